//! Clients that request too much, or that send and read too slowly.

use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::sync::LazyLock;
use std::thread;
use std::time::{Duration, Instant};

use isogen::{Plan, Source};
use kindling::http::ServerLimits;
use tokio::net::TcpSocket;

use crate::connection::RawConnection;
use crate::faults::{LOG, wait_for_log_line};
use crate::server::{ContentServer, bytes_without_repetition, representation, representation_of_file};
use crate::support::Scratch;

/// Longer than all buffers between server and client.
const LEN: usize = 24 << 20;
/// More than ten times the duration of any step.
const PATIENCE: Duration = Duration::from_secs(60);

fn server_with_limits(limits: ServerLimits) -> (ContentServer, Scratch, Vec<u8>) {
    LazyLock::force(&LOG);
    let scratch = Scratch::new();
    let bytes = bytes_without_repetition(LEN);
    let server = ContentServer::start_with_limits(2, limits, None);
    server.put("image", representation_of_file(&scratch.write("base", &bytes)));
    let small = Source::from_bytes("small", bytes[..1000].to_vec());
    server.put("small", representation(Plan::from_source(std::sync::Arc::new(small))));
    (server, scratch, bytes)
}

/// Waits for an effect of the server's background tasks.
#[track_caller]
fn wait_for(what: &str, mut is_there: impl FnMut() -> bool) {
    let start = Instant::now();
    while !is_there() {
        assert!(start.elapsed() < PATIENCE, "{what}");
        thread::sleep(Duration::from_millis(10));
    }
}

/// Connects from the given local address.
fn connect_from(address: &str, server: &ContentServer) -> RawConnection {
    let from: SocketAddr = format!("{address}:0").parse().unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let stream = runtime.block_on(async {
        let socket = TcpSocket::new_v4().unwrap();
        socket.bind(from).unwrap();
        socket.connect(server.address).await.unwrap().into_std().unwrap()
    });
    stream.set_nonblocking(false).unwrap();
    RawConnection::from_stream(stream)
}

#[test]
fn stalled_reader_is_timed_out() {
    let (server, _scratch, bytes) = server_with_limits(ServerLimits {
        stall_time: Duration::from_millis(300),
        ..ServerLimits::default()
    });
    for mode in ["mapped", "read"] {
        let mut stream = TcpStream::connect(server.address).unwrap();
        let address = stream.local_addr().unwrap().to_string();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        stream.write_all(format!("GET /{mode}/image HTTP/1.1\r\nHost: test\r\n\r\n").as_bytes()).unwrap();
        wait_for_log_line(&["WARN", "connection closed, client too slow", &address]);
        // The client gets the bytes before the time limit, and no more.
        let mut received = Vec::new();
        let _ = stream.read_to_end(&mut received);
        let head = received
            .windows(4)
            .position(|window| window == b"\r\n\r\n")
            .map_or(received.len(), |end| end + 4);
        assert!(received.len() - head < LEN && received[head..] == bytes[..received.len() - head], "{mode}");
    }
    assert_eq!(server.connect().request_and_read("GET /mapped/small", "").declared_len(), 1000);
}

/// The kernel reports free space only when half of its buffer is empty, long after a slow client has read bytes.
#[test]
fn slow_reader_is_not_timed_out() {
    let (server, _scratch, bytes) =
        server_with_limits(ServerLimits { stall_time: Duration::from_secs(2), ..ServerLimits::default() });
    let mut connection = server.connect();
    connection.write_request("GET /mapped/image", "");
    connection.read_head();
    let mut received = Vec::new();
    let start = Instant::now();
    // Three times the stall time. In each of these periods, the client reads fewer bytes than the kernel needs to
    // report free space.
    while start.elapsed() < Duration::from_secs(7) {
        received.extend(connection.read_exactly(4000));
        thread::sleep(Duration::from_millis(100));
    }
    received.extend(connection.read_exactly(LEN - received.len()));
    assert!(received == bytes);
    assert_eq!(connection.request_and_read("GET /mapped/small", "").declared_len(), 1000);
}

/// Length of the range in [`begin_range_with_small_buffer`]: as many bytes as the server's kernel buffers hold.
const RANGE_LEN: usize = 256 << 10;

/// Connects with a small receive buffer, and reads the start of a response. Returns the connection and the bytes.
fn begin_range_with_small_buffer(server: &ContentServer, path: &str, headers: &str) -> (TcpStream, Vec<u8>) {
    let socket = socket2::Socket::new(socket2::Domain::IPV4, socket2::Type::STREAM, None).unwrap();
    socket.set_recv_buffer_size(8192).unwrap();
    socket.connect(&server.address.into()).unwrap();
    let mut stream: TcpStream = socket.into();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    let range = format!("Range: bytes=0-{}", RANGE_LEN - 1);
    write!(stream, "GET {path} HTTP/1.1\r\nHost: test\r\n{range}\r\n{headers}\r\n").unwrap();
    let mut first_bytes = vec![0; 500];
    stream.read_exact(&mut first_bytes).unwrap();
    (stream, first_bytes)
}

#[test]
fn stalled_reader_of_buffered_bytes_is_timed_out() {
    let (server, ..) = server_with_limits(ServerLimits {
        stall_time: Duration::from_millis(300),
        ..ServerLimits::default()
    });
    for (path, headers, is_half_closed) in [
        ("/mapped/image", "", false),
        ("/mapped/image", "Connection: close\r\n", false),
        ("/mapped/image", "", true),
        ("/read/image", "", false),
    ] {
        let (stream, _) = begin_range_with_small_buffer(&server, path, headers);
        let address = stream.local_addr().unwrap().to_string();
        if is_half_closed {
            stream.shutdown(Shutdown::Write).unwrap();
        }
        // After a reset, a socket has no peer.
        let what = format!("{path} {headers}{is_half_closed}");
        wait_for(&what, || stream.peer_addr().is_err());
        wait_for_log_line(&["WARN", "connection closed, client too slow", &address]);
    }
}

#[test]
fn slow_reader_of_buffered_bytes_gets_all_bytes() {
    let (server, _scratch, bytes) =
        server_with_limits(ServerLimits { stall_time: Duration::from_secs(2), ..ServerLimits::default() });
    let read_slowly = |headers: &str, is_half_closed: bool| {
        let (mut stream, mut received) = begin_range_with_small_buffer(&server, "/mapped/image", headers);
        if is_half_closed {
            stream.shutdown(Shutdown::Write).unwrap();
        }
        let head = received.windows(4).position(|window| window == b"\r\n\r\n").unwrap() + 4;
        // Reading takes longer than the stall time.
        while received.len() < head + RANGE_LEN {
            let mut part = vec![0; (head + RANGE_LEN - received.len()).min(8000)];
            stream.read_exact(&mut part).unwrap();
            received.extend(part);
            thread::sleep(Duration::from_millis(100));
        }
        assert!(received[head..] == bytes[..RANGE_LEN], "{headers}{is_half_closed}");
    };
    thread::scope(|scope| {
        for (headers, is_half_closed) in [("", false), ("Connection: close\r\n", false), ("", true)] {
            scope.spawn(move || read_slowly(headers, is_half_closed));
        }
    });
}

#[test]
fn idle_client_is_timed_out() {
    let (server, _scratch, bytes) =
        server_with_limits(ServerLimits { idle_time: Duration::from_millis(200), ..ServerLimits::default() });
    let mut connection = server.connect();
    assert!(connection.request_and_read("GET /mapped/small", "").body == bytes[..1000]);
    assert_eq!(connection.read_to_end(), (Vec::new(), true), "the connection was not closed in order");
    // A client with unread bytes is not idle, even if the kernel has accepted all bytes.
    for len in [1 << 20, 12 << 20] {
        connection = server.connect();
        connection.write_request("GET /mapped/image", &format!("Range: bytes=0-{}", len - 1));
        connection.read_head();
        thread::sleep(Duration::from_secs(1));
        assert!(connection.read_exactly(len) == bytes[..len]);
        assert_eq!(connection.read_to_end(), (Vec::new(), true));
    }
}

#[test]
fn slow_request_head_is_timed_out() {
    let (server, ..) =
        server_with_limits(ServerLimits { head_time: Duration::from_secs(1), ..ServerLimits::default() });
    // Nothing, a part of a request, and a part of a request after a response.
    let mut connections = [server.connect(), server.connect(), server.connect()];
    connections[1].write("GET /mapped/sm");
    assert_eq!(connections[2].request_and_read("GET /mapped/small", "").declared_len(), 1000);
    connections[2].write("GET /mapped/small HTTP/1.1\r\nHost:");
    for (number, connection) in connections.iter_mut().enumerate() {
        assert_eq!(connection.read_to_end().0, b"", "{number}");
    }
    // The limit applies to each head, not to the connection.
    let mut connection = server.connect();
    for _ in 0..5 {
        assert_eq!(connection.request_and_read("GET /mapped/small", "").declared_len(), 1000);
        thread::sleep(Duration::from_millis(400));
    }
}

#[test]
fn connections_per_client_are_limited() {
    let limits = ServerLimits { connections: 5, connections_of_client: 2, ..ServerLimits::default() };
    let (server, ..) = server_with_limits(limits);
    let get = "GET /mapped/small";
    let mut open: Vec<_> = (0..2).map(|_| connect_from("127.0.0.1", &server)).collect();
    for connection in &mut open {
        assert_eq!(connection.request_and_read(get, "").status(), 200);
    }
    let mut refused = connect_from("127.0.0.1", &server);
    let answer = refused.request_and_read(get, "");
    assert_eq!((answer.status(), answer.header("retry-after"), answer.body.len()), (503, Some("5"), 0));
    assert_eq!(refused.read_to_end(), (Vec::new(), true));
    // Other addresses have their own limit, and open connections still work.
    for _ in 0..2 {
        open.push(connect_from("127.0.0.2", &server));
    }
    for connection in &mut open {
        assert_eq!(connection.request_and_read(get, "").status(), 200);
    }
    // A released slot is available again.
    open.remove(0);
    wait_for("the place is free", || {
        connect_from("127.0.0.1", &server).request_and_read(get, "").status() == 200
    });
}

#[test]
fn connections_above_the_limit_wait() {
    let limits = ServerLimits { connections: 3, connections_of_client: 3, ..ServerLimits::default() };
    let (server, ..) = server_with_limits(limits);
    let mut open: Vec<_> = (0..3).map(|_| server.connect()).collect();
    for connection in &mut open {
        assert_eq!(connection.request_and_read("GET /mapped/small", "").status(), 200);
    }
    let mut waiting = TcpStream::connect(server.address).unwrap();
    waiting.write_all(b"GET /mapped/small HTTP/1.1\r\nHost: test\r\n\r\n").unwrap();
    waiting.set_read_timeout(Some(Duration::from_millis(300))).unwrap();
    assert!(waiting.read(&mut [0; 1]).is_err(), "bytes were sent");
    assert_eq!(open[0].request_and_read("GET /mapped/small", "").status(), 200);
    open.pop();
    assert_eq!(RawConnection::from_stream(waiting).read_answer(None).status(), 200);
}

#[test]
fn broken_connections_release_their_slots() {
    let limits = ServerLimits { connections: 8, connections_of_client: 8, ..ServerLimits::default() };
    let (server, _scratch, bytes) = server_with_limits(limits);
    for round in 0..100 {
        let mut stream = TcpStream::connect(server.address).unwrap();
        let text = "GET /mapped/image HTTP/1.1\r\nHost: test\r\n\r\n";
        match round % 4 {
            // Closing with unread bytes resets the connection.
            0 => stream.write_all(text.as_bytes()).unwrap(),
            1 => {
                stream.write_all(text.as_bytes()).unwrap();
                stream.read_exact(&mut [0; 100_000]).unwrap();
            }
            2 => stream.write_all(&text.as_bytes()[..20]).unwrap(),
            _ => {}
        }
    }
    // A client that has closed its sending side still gets all bytes.
    let mut connection = server.connect();
    connection.write_request("GET /mapped/image", "");
    connection.close_sending_side();
    assert!(connection.read_answer(None).body == bytes);
    assert_eq!(connection.read_to_end(), (Vec::new(), true));
}

#[test]
fn slow_request_body_is_timed_out() {
    let (server, ..) = server_with_limits(ServerLimits {
        stall_time: Duration::from_secs(2),
        head_time: 2 * PATIENCE,
        ..ServerLimits::default()
    });
    // The reader of the body and the watchdog of the connection run on two threads. With many connections, every
    // stalled connection must be detected.
    let mut silent: Vec<RawConnection> = (0..500).map(|_| server.connect()).collect();
    for connection in &mut silent {
        connection.write("POST /echo HTTP/1.1\r\nHost: test\r\nContent-Length: 10\r\n\r\n12345");
    }
    for connection in &mut silent {
        let (response, _) = connection.read_to_end();
        assert!(!response.starts_with(b"HTTP/1.1 200"), "{}", String::from_utf8_lossy(&response));
    }
    // A slow but steady client is not timed out, even if the whole body takes longer.
    let mut slow = server.connect();
    slow.write("POST /echo HTTP/1.1\r\nHost: test\r\nContent-Length: 10\r\n\r\n");
    for _ in 0..10 {
        thread::sleep(Duration::from_millis(300));
        slow.write("a");
    }
    assert_eq!(slow.read_answer(None).body, b"aaaaaaaaaa");
    assert_eq!(slow.request_and_read("GET /mapped/small", "").declared_len(), 1000);
}
