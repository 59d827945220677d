//! Clients that want too much, or say and take too little.

use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::sync::LazyLock;
use std::thread;
use std::time::{Duration, Instant};

use isogen::{Plan, Source};
use kindling::http::Limits;
use tokio::net::TcpSocket;

use crate::connection::Connection;
use crate::faults::{LOG, has_line};
use crate::server::{Server, content, file, noise};
use crate::support::Scratch;

/// Longer than all buffers on the way to a client.
const LEN: usize = 24 << 20;
/// Nothing takes a tenth of it.
const PATIENCE: Duration = Duration::from_secs(60);

fn limited(limits: Limits) -> (Server, Scratch, Vec<u8>) {
    LazyLock::force(&LOG);
    let scratch = Scratch::new();
    let bytes = noise(LEN);
    let server = Server::within(2, limits, None);
    server.put("image", file(&scratch.write("base", &bytes)));
    let small = Source::from_bytes("small", bytes[..1000].to_vec());
    server.put("small", content(Plan::whole(std::sync::Arc::new(small))));
    (server, scratch, bytes)
}

/// Waits for something that the server does in its own time.
#[track_caller]
fn wait_for(what: &str, mut is_there: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !is_there() {
        assert!(begun.elapsed() < PATIENCE, "{what}");
        thread::sleep(Duration::from_millis(10));
    }
}

/// A connection from an address of this machine.
fn connect_from(address: &str, server: &Server) -> Connection {
    let from: SocketAddr = format!("{address}:0").parse().unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let stream = runtime.block_on(async {
        let socket = TcpSocket::new_v4().unwrap();
        socket.bind(from).unwrap();
        socket.connect(server.address).await.unwrap().into_std().unwrap()
    });
    stream.set_nonblocking(false).unwrap();
    Connection::over(stream)
}

#[test]
fn who_takes_nothing_is_not_waited_for() {
    let (server, _scratch, bytes) =
        limited(Limits { stall_time: Duration::from_millis(300), ..Limits::default() });
    for mode in ["mapped", "read"] {
        let mut stream = TcpStream::connect(server.address).unwrap();
        let address = stream.local_addr().unwrap().to_string();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        stream.write_all(format!("GET /{mode}/image HTTP/1.1\r\nHost: test\r\n\r\n").as_bytes()).unwrap();
        wait_for("the log says it", || has_line(&["WARN", "a connection was closed", &address]));
        // What had come until then, and no more.
        let mut came = Vec::new();
        let _ = stream.read_to_end(&mut came);
        let head = came.windows(4).position(|window| window == b"\r\n\r\n").map_or(came.len(), |end| end + 4);
        assert!(came.len() - head < LEN && came[head..] == bytes[..came.len() - head], "{mode}");
    }
    assert_eq!(server.connect().ask("GET /mapped/small", "").len(), 1000);
}

/// The kernel tells of room for more only when half of what it holds is gone, long after a slow client took something.
#[test]
fn who_takes_a_little_now_and_then_is_waited_for() {
    let (server, _scratch, bytes) =
        limited(Limits { stall_time: Duration::from_secs(3), ..Limits::default() });
    let mut connection = server.connect();
    connection.request("GET /mapped/image", "");
    connection.head();
    let mut came = Vec::new();
    let begun = Instant::now();
    // Long enough to be ended three times. In each of them less is taken than the kernel wants to see gone.
    while begun.elapsed() < Duration::from_secs(10) {
        came.extend(connection.take(4000));
        thread::sleep(Duration::from_millis(100));
    }
    came.extend(connection.take(LEN - came.len()));
    assert!(came == bytes);
    assert_eq!(connection.ask("GET /mapped/small", "").len(), 1000);
}

/// How much [`begin_range`] asks for: as much as the kernel of the server holds.
const RANGE_LEN: usize = 256 << 10;

/// A client with a small receive buffer that takes the beginning of an answer, and what it took.
fn begin_range(server: &Server, path: &str, headers: &str) -> (TcpStream, Vec<u8>) {
    let socket = socket2::Socket::new(socket2::Domain::IPV4, socket2::Type::STREAM, None).unwrap();
    socket.set_recv_buffer_size(8192).unwrap();
    socket.connect(&server.address.into()).unwrap();
    let mut stream: TcpStream = socket.into();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    let range = format!("Range: bytes=0-{}", RANGE_LEN - 1);
    write!(stream, "GET {path} HTTP/1.1\r\nHost: test\r\n{range}\r\n{headers}\r\n").unwrap();
    let mut begun = vec![0; 500];
    stream.read_exact(&mut begun).unwrap();
    (stream, begun)
}

#[test]
fn client_that_stops_taking_a_finished_answer_is_cut() {
    let (server, ..) = limited(Limits { stall_time: Duration::from_millis(300), ..Limits::default() });
    for (path, headers, is_half_closed) in [
        ("/mapped/image", "", false),
        ("/mapped/image", "Connection: close\r\n", false),
        ("/mapped/image", "", true),
        ("/read/image", "", false),
    ] {
        let (stream, _) = begin_range(&server, path, headers);
        let address = stream.local_addr().unwrap().to_string();
        if is_half_closed {
            stream.shutdown(Shutdown::Write).unwrap();
        }
        // A socket has no peer any more once it was reset.
        let what = format!("{path} {headers}{is_half_closed}");
        wait_for(&what, || stream.peer_addr().is_err());
        wait_for(&what, || has_line(&["WARN", "a connection was closed", &address]));
    }
}

#[test]
fn client_that_takes_a_finished_answer_slowly_gets_all_of_it() {
    let (server, _scratch, bytes) =
        limited(Limits { stall_time: Duration::from_secs(2), ..Limits::default() });
    for (headers, is_half_closed) in [("", false), ("Connection: close\r\n", false), ("", true)] {
        let (mut stream, mut came) = begin_range(&server, "/mapped/image", headers);
        if is_half_closed {
            stream.shutdown(Shutdown::Write).unwrap();
        }
        let head = came.windows(4).position(|window| window == b"\r\n\r\n").unwrap() + 4;
        // This takes longer than the stall time.
        while came.len() < head + RANGE_LEN {
            let mut part = vec![0; (head + RANGE_LEN - came.len()).min(8000)];
            stream.read_exact(&mut part).unwrap();
            came.extend(part);
            thread::sleep(Duration::from_millis(100));
        }
        assert!(came[head..] == bytes[..RANGE_LEN], "{headers}{is_half_closed}");
    }
}

#[test]
fn who_asks_for_nothing_is_not_waited_for() {
    let (server, _scratch, bytes) =
        limited(Limits { idle_time: Duration::from_millis(200), ..Limits::default() });
    let mut connection = server.connect();
    assert!(connection.ask("GET /mapped/small", "").body == bytes[..1000]);
    assert_eq!(connection.rest(), (Vec::new(), true), "an orderly end");
    // Whoever still has something to take is not idle, also when all of it was handed over.
    for len in [1 << 20, 12 << 20] {
        connection = server.connect();
        connection.request("GET /mapped/image", &format!("Range: bytes=0-{}", len - 1));
        connection.head();
        thread::sleep(Duration::from_secs(1));
        assert!(connection.take(len) == bytes[..len]);
        assert_eq!(connection.rest(), (Vec::new(), true));
    }
}

#[test]
fn heads_have_to_come_in_time() {
    let (server, ..) = limited(Limits { head_time: Duration::from_secs(1), ..Limits::default() });
    // Nothing, a part, and a part behind an answer.
    let mut connections = [server.connect(), server.connect(), server.connect()];
    connections[1].write("GET /mapped/sm");
    assert_eq!(connections[2].ask("GET /mapped/small", "").len(), 1000);
    connections[2].write("GET /mapped/small HTTP/1.1\r\nHost:");
    for (number, connection) in connections.iter_mut().enumerate() {
        assert_eq!(connection.rest().0, b"", "{number}");
    }
    // The time is that of a head, not that of a connection.
    let mut connection = server.connect();
    for _ in 0..5 {
        assert_eq!(connection.ask("GET /mapped/small", "").len(), 1000);
        thread::sleep(Duration::from_millis(400));
    }
}

#[test]
fn a_client_has_its_share_of_connections() {
    let limits = Limits { connections: 5, connections_of_client: 2, ..Limits::default() };
    let (server, ..) = limited(limits);
    let get = "GET /mapped/small";
    let mut open: Vec<_> = (0..2).map(|_| connect_from("127.0.0.1", &server)).collect();
    for connection in &mut open {
        assert_eq!(connection.ask(get, "").status(), 200);
    }
    let mut refused = connect_from("127.0.0.1", &server);
    let answer = refused.ask(get, "");
    assert_eq!((answer.status(), answer.header("retry-after"), answer.body.len()), (503, Some("5"), 0));
    assert_eq!(refused.rest(), (Vec::new(), true));
    // Others have theirs, and those that are there are as good as before.
    for _ in 0..2 {
        open.push(connect_from("127.0.0.2", &server));
    }
    for connection in &mut open {
        assert_eq!(connection.ask(get, "").status(), 200);
    }
    // A place that is given back can be taken.
    open.remove(0);
    wait_for("the place is free", || connect_from("127.0.0.1", &server).ask(get, "").status() == 200);
}

#[test]
fn connections_above_all_wait() {
    let limits = Limits { connections: 3, connections_of_client: 3, ..Limits::default() };
    let (server, ..) = limited(limits);
    let mut open: Vec<_> = (0..3).map(|_| server.connect()).collect();
    for connection in &mut open {
        assert_eq!(connection.ask("GET /mapped/small", "").status(), 200);
    }
    let mut waiting = TcpStream::connect(server.address).unwrap();
    waiting.write_all(b"GET /mapped/small HTTP/1.1\r\nHost: test\r\n\r\n").unwrap();
    waiting.set_read_timeout(Some(Duration::from_millis(300))).unwrap();
    assert!(waiting.read(&mut [0; 1]).is_err(), "nothing comes");
    assert_eq!(open[0].ask("GET /mapped/small", "").status(), 200);
    open.pop();
    assert_eq!(Connection::over(waiting).answer(None).status(), 200);
}

#[test]
fn connections_that_break_give_their_places_back() {
    let limits = Limits { connections: 8, connections_of_client: 8, ..Limits::default() };
    let (server, _scratch, bytes) = limited(limits);
    for round in 0..100 {
        let mut stream = TcpStream::connect(server.address).unwrap();
        let text = "GET /mapped/image HTTP/1.1\r\nHost: test\r\n\r\n";
        match round % 4 {
            // Ended with what came unread, which resets it.
            0 => stream.write_all(text.as_bytes()).unwrap(),
            1 => {
                stream.write_all(text.as_bytes()).unwrap();
                stream.read_exact(&mut [0; 100_000]).unwrap();
            }
            2 => stream.write_all(&text.as_bytes()[..20]).unwrap(),
            _ => {}
        }
    }
    // Whoever sends no more still gets everything.
    let mut connection = server.connect();
    connection.request("GET /mapped/image", "");
    connection.finish();
    assert!(connection.answer(None).body == bytes);
    assert_eq!(connection.rest(), (Vec::new(), true));
}

#[test]
fn bodies_have_to_come_in_time() {
    let (server, ..) =
        limited(Limits { stall_time: Duration::from_secs(2), head_time: 2 * PATIENCE, ..Limits::default() });
    // The reader of a body and the watch over its connection are on two threads: of many, all have to be noticed.
    let mut silent: Vec<Connection> = (0..500).map(|_| server.connect()).collect();
    for connection in &mut silent {
        connection.write("POST /echo HTTP/1.1\r\nHost: test\r\nContent-Length: 10\r\n\r\n12345");
    }
    for connection in &mut silent {
        let (told, _) = connection.rest();
        assert!(!told.starts_with(b"HTTP/1.1 200"), "{}", String::from_utf8_lossy(&told));
    }
    // One that is slow is waited for, longer than that in all.
    let mut slow = server.connect();
    slow.write("POST /echo HTTP/1.1\r\nHost: test\r\nContent-Length: 10\r\n\r\n");
    for _ in 0..10 {
        thread::sleep(Duration::from_millis(300));
        slow.write("a");
    }
    assert_eq!(slow.answer(None).body, b"aaaaaaaaaa");
    assert_eq!(slow.ask("GET /mapped/small", "").len(), 1000);
}
