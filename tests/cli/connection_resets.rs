//! Clients that reset their connections in the middle of a response.

use std::fs;
use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::path::PathBuf;
use std::thread;
use std::time::{Duration, Instant};

use socket2::{Domain, Socket, Type};

use crate::downloads::ServedImage;
use crate::serve::{PATIENCE, ServeProcess};

/// As many connections as the descriptor limit of a test allows at a time.
const BATCH: usize = 500;
const BATCHES: usize = 4;
/// Maximum time until the server releases reset connections.
const RELEASE_TIMEOUT: Duration = Duration::from_secs(2);
/// Number of descriptors that server threads open on first use. Each thread has a pipe.
const THREAD_DESCRIPTORS: usize = 200;
/// The kernel counts CPU time in hundredths of a second. `sysconf(_SC_CLK_TCK)` is 100 on every Linux architecture.
const TICKS_PER_SECOND: u64 = 100;

/// Returns the number of open descriptors of the server, and how many of them are sockets.
fn open_descriptors(server: &ServeProcess) -> (usize, usize) {
    let folder = fs::read_dir(format!("/proc/{}/fd", server.child.id())).unwrap();
    // A descriptor may be closed before its link is read.
    let targets: Vec<PathBuf> = folder.filter_map(|entry| fs::read_link(entry.ok()?.path()).ok()).collect();
    let sockets = targets.iter().filter(|target| target.to_string_lossy().starts_with("socket:")).count();
    (targets.len(), sockets)
}

/// Returns the CPU time that the server has used, in ticks.
fn cpu_ticks(server: &ServeProcess) -> u64 {
    let stat = fs::read_to_string(format!("/proc/{}/stat", server.child.id())).unwrap();
    let (_, fields) = stat.rsplit_once(") ").unwrap();
    let ticks = |at: usize| fields.split(' ').nth(at).unwrap().parse::<u64>().unwrap();
    ticks(11) + ticks(12)
}

/// Connects with a small receive buffer, so that most of the response stays in the server.
fn connect_with_small_buffer(server: &ServeProcess) -> TcpStream {
    let address: SocketAddr = server.addresses[0].parse().unwrap();
    let socket = Socket::new(Domain::for_address(address), Type::STREAM, None).unwrap();
    socket.set_recv_buffer_size(8192).unwrap();
    socket.connect(&address.into()).unwrap();
    socket.into()
}

/// Starts ranges of 64, 128 and 256 KiB, and resets their connections after the first bytes. Half of the connections
/// are closed with unread bytes, the others with a linger time of zero. At that time, the server waits for the next
/// request on most connections. On the others it is writing, or waiting until the client acknowledges the last bytes.
fn reset_a_batch(images: &ServedImage) {
    let mut streams: Vec<TcpStream> = (0..BATCH).map(|_| connect_with_small_buffer(&images.server)).collect();
    for (number, stream) in streams.iter_mut().enumerate() {
        let last = 4095 + [64 << 10, 128 << 10, 256 << 10][number % 3];
        let range = format!("Range: bytes=4096-{last}");
        let headers = match number % 10 {
            0 => "Accept: */*",
            1 => &format!("{range}\r\nConnection: close"),
            _ => &range,
        };
        write!(stream, "GET {} HTTP/1.1\r\nHost: test\r\n{headers}\r\n\r\n", images.path).unwrap();
        if number % 10 == 2 {
            stream.shutdown(Shutdown::Write).unwrap();
        }
    }
    for stream in &mut streams {
        let mut start = [0; 500];
        stream.read_exact(&mut start).unwrap();
        assert!(start.starts_with(b"HTTP/1.1 20"));
    }
    // Wait until the server has passed the rest of each response to the kernel and waits for the next request.
    thread::sleep(Duration::from_millis(400));
    for stream in streams.iter().step_by(2) {
        socket2::SockRef::from(stream).set_linger(Some(Duration::ZERO)).unwrap();
    }
}

/// Waits until the server's descriptors and CPU time return to their earlier level. The error names the resource that
/// does not.
fn wait_for_release(images: &ServedImage, before: (usize, usize)) -> Result<(), String> {
    let start = Instant::now();
    let is_as_before = |(all, sockets)| all <= before.0 + THREAD_DESCRIPTORS && sockets <= before.1;
    while !is_as_before(open_descriptors(&images.server)) {
        let open = open_descriptors(&images.server);
        // A busy machine cannot explain a leak.
        assert!(start.elapsed() < PATIENCE, "{open:?} descriptors and sockets are open, {before:?} were");
        thread::sleep(Duration::from_millis(10));
    }
    if start.elapsed() >= RELEASE_TIMEOUT {
        return Err(format!("the descriptors were released after {:?}", start.elapsed()));
    }
    let ticks = cpu_ticks(&images.server);
    thread::sleep(Duration::from_secs(1));
    let used = cpu_ticks(&images.server) - ticks;
    if used > TICKS_PER_SECOND / 20 {
        return Err(format!("an idle server used {used} hundredths of a second in one"));
    }
    Ok(())
}

/// Resets connections and stops the server. The error names the resource that the server did not release in time.
fn reset_connections() -> Result<(), String> {
    let images = ServedImage::start(&[]);
    let before = open_descriptors(&images.server);
    for _ in 0..BATCHES {
        reset_a_batch(&images);
    }
    wait_for_release(&images, before)?;
    let start = Instant::now();
    images.server.stop();
    if start.elapsed() >= Duration::from_secs(1) {
        return Err(format!("the server took {:?} to end", start.elapsed()));
    }
    Ok(())
}

/// The server must release everything in one of three attempts, because a busy machine may delay a single attempt.
#[test]
fn reset_connections_leak_no_resources() {
    let errors: Vec<String> = (0..3).map_while(|_| reset_connections().err()).collect();
    assert!(errors.len() < 3, "{errors:#?}");
}
