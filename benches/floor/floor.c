/* The floor for a durable append: a process that appends bytes to a file, makes them durable and ends. */
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

int main(int argc, char **argv) {
    if (argc != 3) return 2;
    int fd = open(argv[1], O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    if (fd < 0) return 1;
    size_t length = strlen(argv[2]);
    if (write(fd, argv[2], length) != (ssize_t)length) return 1;
    if (fdatasync(fd) != 0) return 1;
    return close(fd) != 0;
}
