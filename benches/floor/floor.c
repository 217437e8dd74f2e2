/* The floor for a durable append: a process that appends bytes to a file, makes them durable and ends. The bytes are
   its second argument, or its input if that is "-". */
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

static char input[1 << 20];

int main(int argc, char **argv) {
    if (argc != 3) return 2;
    const char *bytes = argv[2];
    size_t length = strlen(bytes);
    if (strcmp(bytes, "-") == 0) {
        ssize_t got;
        length = 0;
        while ((got = read(0, input + length, sizeof input - length)) > 0) length += (size_t)got;
        if (got < 0) return 1;
        bytes = input;
    }
    int fd = open(argv[1], O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    if (fd < 0) return 1;
    if (write(fd, bytes, length) != (ssize_t)length) return 1;
    if (fdatasync(fd) != 0) return 1;
    return close(fd) != 0;
}
