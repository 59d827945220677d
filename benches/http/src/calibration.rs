//! What the client could do: the same work against threads of this process that send one buffer again and again.
//!
//! Where a server comes near to that, the client is what was measured.

use std::io::{ErrorKind, Read, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use anyhow::{Context, Result};

use crate::client::Target;
use crate::figures::{Better, Line, Measure, float};
use crate::fleet::{Client, Script, Until, run};
use crate::interrupt;
use crate::measure::GIB;
use crate::random::Random;
use crate::servers::Transport;
use crate::work::{Task, Work};

pub(crate) const NAME: &str = "in-process";
const BUFFER: usize = 1 << 20;
const MAX_REQUEST: usize = 4096;
/// How long a thread that nobody asks stays, once it is to end.
const PATIENCE: Duration = Duration::from_millis(50);

/// Measures whole files and small ranges.
///
/// # Errors
///
/// When the system does not let it.
pub(crate) fn measure(total: u64, time: Duration) -> Result<Vec<Line>> {
    let server = Server::start(total)?;
    let target = Arc::new(server.target());
    let tasks = [
        Task::Stream { clients: 1 },
        Task::Stream { clients: 4 },
        Task::Ranges { len: 2 << 10, connections: 32 },
        Task::Ranges { len: 64 << 10, connections: 32 },
    ];
    let mut lines = Vec::new();
    for task in tasks {
        interrupt::check()?;
        let (count, script) = match task {
            Task::Ranges { len, connections } => {
                (connections, Script::Random { len, random: Random::new(3) })
            }
            Task::Stream { clients } => (clients, Script::Whole),
            _ => continue,
        };
        let clients: Vec<Client> =
            (0..count).map(|_| Client::open(&target, total, script.clone())).collect::<Result<_>>()?;
        let tally = run(clients, Until::Elapsed(time))?;
        let seconds = tally.elapsed.as_secs_f64();
        let (value, unit) = match task {
            Task::Stream { .. } => (float(tally.bytes) / GIB / seconds, "GiB/s"),
            _ => (float(tally.requests) / seconds, "requests/s"),
        };
        let work = Work { transport: Transport::Plain, task };
        let mut line = Line::new(&work.key(), &work.title());
        line.add(NAME, &[Measure { name: "rate", unit, better: Better::Higher, value }]);
        lines.push(line);
    }
    Ok(lines)
}

/// Threads that answer, one for each connection, until this is dropped.
pub(crate) struct Server {
    port: u16,
    ends: Arc<AtomicBool>,
    listener: Option<JoinHandle<()>>,
}

impl Server {
    /// Listens, and answers with a file of so many bytes.
    ///
    /// # Errors
    ///
    /// When the system does not let it.
    pub(crate) fn start(total: u64) -> Result<Self> {
        let socket = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
        let port = socket.local_addr()?.port();
        let ends = Arc::new(AtomicBool::new(false));
        let seen = Arc::clone(&ends);
        let listener = std::thread::Builder::new().name("listener".to_owned()).spawn(move || {
            let buffer: Arc<[u8]> = vec![0x5a; BUFFER].into();
            for connection in socket.incoming().map_while(Result::ok) {
                if seen.load(Ordering::Relaxed) {
                    break;
                }
                let (buffer, seen) = (Arc::clone(&buffer), Arc::clone(&seen));
                // A client that goes away is the end of a thread and of nothing else.
                std::thread::spawn(move || drop(answer_all(connection, &buffer, total, &seen)));
            }
        })?;
        Ok(Self { port, ends, listener: Some(listener) })
    }

    pub(crate) fn target(&self) -> Target {
        let address = (Ipv4Addr::LOCALHOST, self.port).into();
        Target { address, authority: format!("127.0.0.1:{}", self.port), path: "/".to_owned(), tls: None }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.ends.store(true, Ordering::Relaxed);
        let _ = TcpStream::connect((Ipv4Addr::LOCALHOST, self.port));
        if let Some(listener) = self.listener.take() {
            let _ = listener.join();
        }
    }
}

fn answer_all(mut socket: TcpStream, buffer: &[u8], total: u64, ends: &AtomicBool) -> Result<()> {
    socket.set_nodelay(true)?;
    socket.set_read_timeout(Some(PATIENCE))?;
    socket.set_write_timeout(Some(Duration::from_secs(10)))?;
    let mut request = Vec::new();
    let mut piece = [0; MAX_REQUEST];
    while !ends.load(Ordering::Relaxed) {
        let len = match socket.read(&mut piece) {
            Ok(0) => break,
            Ok(len) => len,
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => continue,
            Err(error) => return Err(error.into()),
        };
        request.extend_from_slice(piece.get(..len).unwrap_or_default());
        if request.ends_with(b"\r\n\r\n") {
            answer(&mut socket, &request, buffer, total)?;
            request.clear();
        } else if request.len() > MAX_REQUEST {
            break;
        }
    }
    Ok(())
}

fn answer(socket: &mut TcpStream, request: &[u8], buffer: &[u8], total: u64) -> Result<()> {
    let text = std::str::from_utf8(request)?;
    let range = text.lines().find_map(|line| line.strip_prefix("Range: bytes=")?.split_once('-'));
    let (mut left, head) = if let Some((first, last)) = range {
        let (first, last): (u64, u64) = (first.parse()?, last.parse()?);
        let len = last.checked_sub(first).context("an empty range")? + 1;
        let range = format!("Content-Range: bytes {first}-{last}/{total}\r\n");
        (len, format!("HTTP/1.1 206 Partial Content\r\nContent-Length: {len}\r\n{range}\r\n"))
    } else {
        (total, format!("HTTP/1.1 200 OK\r\nContent-Length: {total}\r\n\r\n"))
    };
    let mut head = head.as_bytes();
    while left > 0 || !head.is_empty() {
        let len = usize::try_from(left).unwrap_or(usize::MAX).min(buffer.len());
        let body = buffer.get(..len).unwrap_or_default();
        let slices = [std::io::IoSlice::new(head), std::io::IoSlice::new(body)];
        let sent = socket.write_vectored(&slices)?;
        let of_head = sent.min(head.len());
        head = head.get(of_head..).unwrap_or_default();
        left -= u64::try_from(sent - of_head)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The whole client, from epoll to the checks of answers, against the server of the same process.
    #[test]
    fn clients_get_what_they_ask_for() {
        let server = Server::start(3 << 20).unwrap();
        let target = Arc::new(server.target());
        for count in [1, 5] {
            let clients =
                (0..count).map(|_| Client::open(&target, 3 << 20, Script::Whole).unwrap()).collect();
            let tally = run(clients, Until::Once).unwrap();
            assert_eq!((tally.requests, tally.bytes), (count, count * (3 << 20)));
            assert_eq!(tally.latencies.len(), usize::try_from(count).unwrap());
        }
        let script = Script::Random { len: 1000, random: Random::new(1) };
        let clients = (0..3).map(|_| Client::open(&target, 3 << 20, script.clone()).unwrap()).collect();
        let tally = run(clients, Until::Elapsed(Duration::from_millis(30))).unwrap();
        assert!(tally.requests > 3 && tally.bytes == tally.requests * 1000);
        let open = |reads| Client::open(&target, 3 << 20, Script::Replay { reads, asked: 0 }).unwrap();
        let clients = vec![open([(0, 9)].into()), open([(5, 2004), (70, 70)].into())];
        let tally = run(clients, Until::Replayed(3)).unwrap();
        assert_eq!((tally.requests, tally.bytes), (3 + 6, 3 * 10 + 3 * 2001));
    }

    #[test]
    fn another_length_than_the_wanted_one_ends_the_run() {
        let server = Server::start(1 << 20).unwrap();
        let target = Arc::new(server.target());
        for (count, script) in [(1, Script::Whole), (2, Script::Random { len: 9, random: Random::new(1) })] {
            let open = |_| Client::open(&target, (1 << 20) + 1, script.clone()).unwrap();
            let error = run((0..count).map(open).collect(), Until::Once).unwrap_err();
            assert!(error.to_string().contains("and not"), "{error}");
        }
    }
}
