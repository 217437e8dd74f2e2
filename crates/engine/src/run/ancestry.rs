//! Whether this process was started by an agent.
//!
//! Variables can be unset by whoever starts a process; its ancestors cannot be changed. Orphans of a run come to its
//! driver, so an agent's processes stay below it as long as it lives.

use std::net::IpAddr;
use std::net::SocketAddr;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use segno_core::event::Holder;

use super::tree;
use crate::life;

/// Longer lines of ancestors are not followed.
const MOST: usize = 1_024;

/// The command that keeps sessions for an agent.
const SERVER: &[u8] = b"mcp";

/// What the line of ancestors says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Below {
    /// An agent started it.
    Run,
    /// Nobody but a person or a program of theirs.
    Nobody,
    /// The system does not tell.
    Unknown,
}

/// Whether this process is below a run.
pub fn below_run() -> Below {
    below_run_of(std::process::id())
}

/// Whether a process is below a run.
pub fn below_run_of(pid: u32) -> Below {
    let Some(mut parent) = tree::parent_of(pid) else { return Below::Unknown };
    // What this process was given of variables is for its caller to say.
    if is_in_group(pid) || (pid != std::process::id() && is_marked(pid)) {
        return Below::Run;
    }
    let own = own_program();
    for _ in 0..MOST {
        if parent <= 1 {
            return Below::Nobody;
        }
        if is_marked(parent) || is_driver(parent, own) {
            return Below::Run;
        }
        // One that has just ended has left its children to another, whose line is followed then.
        match tree::parent_of(parent) {
            Some(next) => parent = next,
            None => return Below::Unknown,
        }
    }
    Below::Unknown
}

/// Whether an agent started this process: one of these holders, or one that has started a server to keep its sessions.
/// Such a server is the agent's child, and what else the agent starts is beside it.
pub fn is_below(holders: &[Holder]) -> bool {
    ancestors(std::process::id()).is_none_or(|above| holds_or_serves(&above, holders))
}

/// Whether a process is an agent, or was started by one: in a run, as the holder of a session, or with a server that keeps
/// sessions for it. What the system does not tell of it is neither yes nor no.
pub fn agent_of(pid: u32, holders: &[Holder]) -> Below {
    match (below_run_of(pid), ancestors(pid)) {
        (Below::Nobody, Some(mut above)) => {
            above.push(pid);
            if holds_or_serves(&above, holders) { Below::Run } else { Below::Nobody }
        }
        (Below::Nobody, None) => Below::Unknown,
        (known, _) => known,
    }
}

fn holds_or_serves(above: &[u32], holders: &[Holder]) -> bool {
    let here = life::here();
    let seen = |holder: &Holder| {
        (&holder.host, &holder.boot_id, &holder.pid_namespace)
            == (&here.host, &here.boot_id, &here.pid_namespace)
    };
    let holds = |holder: &Holder| {
        above.contains(&holder.pid) && tree::start_of(holder.pid) == Some(holder.process_start)
    };
    holders.iter().any(|holder| seen(holder) && holds(holder)) || runs_server(above)
}

/// The processes above one, the nearest first. None for a line that is too long to be somebody's terminal.
fn ancestors(mut pid: u32) -> Option<Vec<u32>> {
    let mut above = Vec::new();
    while above.len() < MOST {
        match tree::parent_of(pid) {
            Some(parent) if parent > 1 => above.push(parent),
            _ => return Some(above),
        }
        pid = *above.last()?;
    }
    None
}

/// Whether one of these processes has started a server that keeps sessions for it.
fn runs_server(above: &[u32]) -> bool {
    let own = own_program();
    let is_server = |pid: u32| {
        let line = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        line.split(|byte| *byte == 0).skip(1).any(|word| word == SERVER) && is_driver(pid, own)
    };
    let pids = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    pids.filter_map(|entry| entry.file_name().to_str()?.parse().ok())
        .any(|pid: u32| tree::parent_of(pid).is_some_and(|parent| above.contains(&parent)) && is_server(pid))
}

pub(super) fn own_program() -> Option<(u64, u64)> {
    program_of(std::process::id())
}

/// The file of the program that a process runs.
pub(super) fn program_of(pid: u32) -> Option<(u64, u64)> {
    std::fs::metadata(format!("/proc/{pid}/exe")).ok().map(|meta| (meta.dev(), meta.ino()))
}

/// Whether a process was given the variables of a run.
pub(crate) fn is_marked(pid: u32) -> bool {
    let environment = std::fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
    let names: [&[u8]; 2] = [b"SEGNO_RUN=", b"SEGNO_TREE="];
    environment.split(|byte| *byte == 0).any(|variable| {
        names.iter().any(|name| variable.strip_prefix(*name).is_some_and(|value| !value.is_empty()))
    })
}

/// Whether a process is this program: only drivers have children that run it again.
fn is_driver(pid: u32, own: Option<(u64, u64)>) -> bool {
    let same = program_of(pid).is_some_and(|program| Some(program) == own);
    let named = std::fs::read_link(format!("/proc/{pid}/exe")).is_ok_and(|exe| {
        let name = Path::new(&exe).file_name().map(OsStrExt::as_bytes).unwrap_or_default();
        name == b"segno" || name == b"segno (deleted)"
    });
    same || named
}

/// Whether it is in the control group of a run.
fn is_in_group(pid: u32) -> bool {
    let groups = std::fs::read_to_string(format!("/proc/{pid}/cgroup")).unwrap_or_default();
    groups.lines().flat_map(|line| line.split('/')).any(|part| {
        let run = part.strip_prefix("segno-").unwrap_or_default();
        run.len() == 32 && run.bytes().all(|byte| byte.is_ascii_hexdigit())
    })
}

/// Who has the other end of a connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Caller {
    /// These processes of this machine; or, where it lies with one that does not let others look, all that it may be.
    These(Vec<u32>),
    /// Another machine.
    Elsewhere,
    /// Somebody on this machine who has gone, or cannot be seen from here.
    Unknown,
}

/// Who has the other end of a connection now.
pub fn caller(peer: SocketAddr, own: SocketAddr) -> Caller {
    let plain = |it: SocketAddr| SocketAddr::new(it.ip().to_canonical(), it.port());
    let (peer, own) = (plain(peer), plain(own));
    let tables: Vec<String> = ["/proc/net/tcp", "/proc/net/tcp6"]
        .into_iter()
        .filter_map(|table| std::fs::read_to_string(table).ok())
        .collect();
    let ends = tables.iter().flat_map(|table| table.lines()).find_map(|line| {
        let mut words = line.split_whitespace().skip(1);
        let (local, remote) = (words.next()?, words.next()?);
        let ends = address_of(local) == Some(peer) && address_of(remote) == Some(own);
        let (user, inode) = (words.nth(4)?.parse::<u32>().ok()?, words.nth(1)?.parse::<u64>().ok()?);
        ends.then_some((user, inode))
    });
    match ends {
        // Every connection within this machine stands in the tables from both of its sides.
        None if tables.is_empty() || peer.ip().is_loopback() || peer.ip() == own.ip() => Caller::Unknown,
        None => Caller::Elsewhere,
        // Whoever has closed it is nobody any more.
        Some((_, 0)) => Caller::Unknown,
        Some((user, inode)) => match holders_of(user, inode) {
            those if those.is_empty() => Caller::Unknown,
            those => Caller::These(those),
        },
    }
}

/// The processes that have a socket open; where none is seen, those of its user that let nobody look.
fn holders_of(user: u32, inode: u64) -> Vec<u32> {
    let wanted = format!("socket:[{inode}]");
    let (mut these, mut hidden) = (Vec::new(), Vec::new());
    let pids = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    for pid in pids.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok()) {
        match std::fs::read_dir(format!("/proc/{pid}/fd")) {
            Ok(open) => {
                let mut links = open.flatten().filter_map(|file| std::fs::read_link(file.path()).ok());
                if links.any(|link| link.as_os_str() == wanted.as_str()) {
                    these.push(pid);
                }
            }
            Err(why) if why.kind() == std::io::ErrorKind::PermissionDenied && is_of(pid, user) => {
                hidden.push(pid);
            }
            Err(_) => {}
        }
    }
    if these.is_empty() { hidden } else { these }
}

/// Whether a process runs as this user, in one way or another.
fn is_of(pid: u32, user: u32) -> bool {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let users = status.lines().find_map(|line| line.strip_prefix("Uid:")).unwrap_or_default();
    users.split_whitespace().any(|word| word.parse() == Ok(user))
}

/// An address as the kernel writes it in its tables: each four bytes as one number of this machine.
fn address_of(text: &str) -> Option<SocketAddr> {
    let (address, port) = text.split_once(':')?;
    let port = u16::from_str_radix(port, 16).ok()?;
    let words: Option<Vec<[u8; 4]>> = address
        .as_bytes()
        .chunks(8)
        .map(|chunk| Some(u32::from_str_radix(std::str::from_utf8(chunk).ok()?, 16).ok()?.to_ne_bytes()))
        .collect();
    let bytes = words?.concat();
    let ip = match <[u8; 4]>::try_from(bytes.as_slice()) {
        Ok(four) => IpAddr::from(four),
        Err(_) => IpAddr::from(<[u8; 16]>::try_from(bytes.as_slice()).ok()?).to_canonical(),
    };
    Some(SocketAddr::new(ip, port))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_has_the_other_end_of_a_connection_is_found() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let client = std::net::TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (_server, peer) = listener.accept().unwrap();
        let own = listener.local_addr().unwrap();
        assert_eq!(caller(peer, own), Caller::These(vec![std::process::id()]));
        let mapped = |it: SocketAddr| match it.ip() {
            IpAddr::V4(four) => SocketAddr::new(IpAddr::V6(four.to_ipv6_mapped()), it.port()),
            IpAddr::V6(_) => it,
        };
        assert_eq!(caller(mapped(peer), mapped(own)), Caller::These(vec![std::process::id()]));
        // Whoever has gone is not somebody else.
        drop(client);
        assert_eq!(caller(peer, own), Caller::Unknown);
        let nobody: SocketAddr = "127.0.0.1:1".parse().unwrap();
        assert_eq!(caller(nobody, own), Caller::Unknown);
        let elsewhere: SocketAddr = "192.0.2.7:4000".parse().unwrap();
        assert_eq!(caller(elsewhere, own), Caller::Elsewhere);
    }

    #[test]
    fn addresses_of_the_kernel_are_read() {
        if cfg!(target_endian = "little") {
            assert_eq!(address_of("0100007F:1CB2"), Some("127.0.0.1:7346".parse().unwrap()));
            let mapped = "0000000000000000FFFF00000100007F:0050";
            assert_eq!(address_of(mapped), Some("127.0.0.1:80".parse().unwrap()));
            assert_eq!(
                address_of("00000000000000000000000001000000:0050"),
                Some("[::1]:80".parse().unwrap())
            );
        }
        assert_eq!(address_of("0100007F"), None);
        assert_eq!(address_of("é:1"), None);
    }
}
