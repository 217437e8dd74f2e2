//! Reads objects through one long-lived `git cat-file --batch`.

use std::io::BufRead as _;
use std::io::BufReader;
use std::io::Read as _;
use std::io::Write;
use std::process::Child;
use std::process::ChildStdin;
use std::process::ChildStdout;
use std::process::Stdio;

use crate::error::Error;
use crate::git::Git;
use crate::id::Hasher;
use crate::id::Kind;
use crate::id::ObjectId;

/// Commits, trees, manifests and rules are not larger than this.
const LARGEST_WHOLE: u64 = 64 << 20;

/// A reader of objects. What it reads is checked against the id.
pub(crate) struct Batch {
    child: Child,
    input: Option<ChildStdin>,
    output: BufReader<ChildStdout>,
}

impl Batch {
    pub(crate) fn start(git: &Git) -> Result<Self, Error> {
        let failed = |said: String| Error::Git { command: "cat-file".to_owned(), said };
        let mut child = git
            .command(&["cat-file".as_ref(), "--batch".as_ref()])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .map_err(|why| failed(why.to_string()))?;
        let (Some(input), Some(output)) = (child.stdin.take(), child.stdout.take()) else {
            return Err(failed("it has no pipes".to_owned()));
        };
        Ok(Self { child, input: Some(input), output: BufReader::with_capacity(1 << 17, output) })
    }

    /// A whole object. Those that are read whole are small; a larger one is not what it is taken for.
    pub(crate) fn read(&mut self, id: ObjectId, kind: Kind) -> Result<Vec<u8>, Error> {
        let mut data = Vec::new();
        self.copy_up_to(id, kind, LARGEST_WHOLE, &mut data)?;
        Ok(data)
    }

    /// Copies an object's content and answers with its size. If it is not what its id says, that is an error, and
    /// what was written must not be used.
    pub(crate) fn copy(&mut self, id: ObjectId, kind: Kind, to: &mut impl Write) -> Result<u64, Error> {
        self.copy_up_to(id, kind, u64::MAX, to)
    }

    /// The same; an object of more than `most` bytes is an error.
    pub(crate) fn copy_up_to(
        &mut self,
        id: ObjectId,
        kind: Kind,
        most: u64,
        to: &mut impl Write,
    ) -> Result<u64, Error> {
        let broken = |why: &str| Error::damaged(format!("object {id}"), why);
        let lost = |why: std::io::Error| broken(&why.to_string());
        let input = self.input.as_mut().ok_or_else(|| broken("git has gone"))?;
        input.write_all(format!("{id}\n").as_bytes()).and_then(|()| input.flush()).map_err(lost)?;
        let mut head = String::new();
        self.output.read_line(&mut head).map_err(lost)?;
        let mut words = head.split_whitespace();
        let (_, found, size) = (words.next(), words.next().unwrap_or("missing"), words.next());
        let Some(size) = size.and_then(|size| size.parse::<u64>().ok()) else { return Err(broken(found)) };
        if Kind::from_name(found) != Some(kind) {
            return Err(broken("it is of another kind"));
        }
        if size > most {
            // What it would send now is not read, so nothing more can be asked.
            self.input = None;
            return Err(broken("it is too large"));
        }
        let mut hasher = Hasher::object(kind, size);
        let mut left = size;
        let mut failed = None;
        while left > 0 {
            let bytes = self.output.fill_buf().map_err(lost)?;
            if bytes.is_empty() {
                return Err(broken("it cannot be read"));
            }
            let take = bytes.len().min(usize::try_from(left).unwrap_or(usize::MAX));
            let part = bytes.get(..take).unwrap_or_default();
            hasher.update(part);
            // The rest must be read all the same, or the next answer would begin with it.
            if failed.is_none() {
                failed = to.write_all(part).err();
            }
            self.output.consume(take);
            left -= take as u64;
        }
        self.output.read_exact(&mut [0]).map_err(lost)?;
        if let Some(why) = failed {
            return Err(Error::Io { what: "cannot write", path: format!("object {id}").into(), source: why });
        }
        if hasher.finish() == id { Ok(size) } else { Err(broken("its content is not what its id says")) }
    }
}

impl Drop for Batch {
    fn drop(&mut self) {
        // It ends when its input does.
        self.input = None;
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
