//! A client connection, in which the test controls every byte.

use std::io::{BufRead, BufReader, ErrorKind, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::time::Duration;

/// More than ten times the duration of any step.
const PATIENCE: Duration = Duration::from_secs(30);

#[derive(Debug)]
pub(crate) struct RawConnection {
    stream: BufReader<TcpStream>,
}

#[derive(Debug)]
pub(crate) struct ReceivedAnswer {
    /// The status line and all headers.
    pub(crate) head: String,
    pub(crate) body: Vec<u8>,
}

impl RawConnection {
    pub(crate) fn new(address: SocketAddr) -> Self {
        Self::from_stream(TcpStream::connect(address).unwrap())
    }

    /// Uses an open connection.
    pub(crate) fn from_stream(stream: TcpStream) -> Self {
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        stream.set_write_timeout(Some(PATIENCE)).unwrap();
        Self { stream: BufReader::new(stream) }
    }

    /// Returns the socket, whose kernel state tests inspect.
    pub(crate) fn stream(&self) -> &TcpStream {
        self.stream.get_ref()
    }

    /// Writes bytes verbatim.
    pub(crate) fn write(&mut self, text: impl AsRef<[u8]>) {
        self.stream.get_mut().write_all(text.as_ref()).unwrap();
    }

    /// Writes a request with these headers, one per line.
    pub(crate) fn write_request(&mut self, line: &str, headers: &str) {
        let headers: String = headers.lines().map(|line| format!("{}\r\n", line.trim())).collect();
        self.write(format!("{line} HTTP/1.1\r\nHost: test\r\n{headers}\r\n"));
    }

    /// Sends a request and reads the response.
    pub(crate) fn request_and_read(&mut self, line: &str, headers: &str) -> ReceivedAnswer {
        self.write_request(line, headers);
        self.read_answer(if line.starts_with("HEAD ") { Some(0) } else { None })
    }

    /// Reads the head of a response.
    pub(crate) fn read_head(&mut self) -> String {
        let mut head = Vec::new();
        while !head.ends_with(b"\r\n\r\n") {
            assert_ne!(
                self.stream.read_until(b'\n', &mut head).unwrap(),
                0,
                "{}",
                String::from_utf8_lossy(&head)
            );
        }
        String::from_utf8(head).unwrap()
    }

    /// Reads a response whose body is `len` bytes long, or as long as the head declares.
    pub(crate) fn read_answer(&mut self, len: Option<usize>) -> ReceivedAnswer {
        let mut answer = ReceivedAnswer { head: self.read_head(), body: Vec::new() };
        let has_none = answer.status() == 304 || answer.status() < 200;
        let len = len.unwrap_or_else(|| if has_none { 0 } else { answer.declared_len() });
        answer.body = self.read_exactly(len);
        answer
    }

    /// Reads exactly `len` bytes.
    pub(crate) fn read_exactly(&mut self, len: usize) -> Vec<u8> {
        let mut bytes = vec![0; len];
        self.stream.read_exact(&mut bytes).unwrap();
        bytes
    }

    /// Reads up to `most` available bytes; `None` if the connection was reset.
    pub(crate) fn read_available(&mut self, most: usize) -> Option<Vec<u8>> {
        let mut bytes = vec![0; most];
        match self.stream.read(&mut bytes) {
            Ok(len) => bytes.truncate(len),
            Err(error) if error.kind() == ErrorKind::ConnectionReset => return None,
            Err(error) => panic!("{error}"),
        }
        assert!(!bytes.is_empty(), "the connection was not closed in order");
        Some(bytes)
    }

    /// Reads all bytes until the connection ends. The second value is `false` if the connection was reset.
    pub(crate) fn read_to_end(&mut self) -> (Vec<u8>, bool) {
        let mut bytes = Vec::new();
        match self.stream.read_to_end(&mut bytes) {
            Ok(_) => (bytes, true),
            Err(error) if error.kind() == ErrorKind::ConnectionReset => (bytes, false),
            Err(error) => panic!("{error}"),
        }
    }

    /// Closes the sending side.
    pub(crate) fn close_sending_side(&mut self) {
        self.stream.get_ref().shutdown(Shutdown::Write).unwrap();
    }

    /// Returns `true` if the server has closed the connection after it read all sent bytes.
    pub(crate) fn is_closed(&mut self) -> bool {
        self.stream.get_ref().set_read_timeout(Some(Duration::from_millis(100))).unwrap();
        match self.stream.fill_buf() {
            Ok(bytes) => bytes.is_empty(),
            Err(error) => error.kind() == ErrorKind::ConnectionReset,
        }
    }
}

impl ReceivedAnswer {
    pub(crate) fn status(&self) -> u16 {
        self.head.split(' ').nth(1).unwrap().parse().unwrap()
    }

    /// Returns the value of a header, which must not be repeated.
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        let is_it = |(key, _): &(&str, &str)| key.eq_ignore_ascii_case(name);
        let mut values = self.head.lines().filter_map(|line| line.split_once(": ")).filter(is_it);
        let value = values.next().map(|(_, value)| value);
        assert!(values.next().is_none(), "{name} twice: {}", self.head);
        value
    }

    /// Returns the declared body length.
    pub(crate) fn declared_len(&self) -> usize {
        self.header("content-length")
            .unwrap_or_else(|| panic!("no Content-Length: {}", self.head))
            .parse()
            .unwrap()
    }

    /// Returns all headers except the date, which differs between responses.
    pub(crate) fn headers_without_date(&self) -> Vec<&str> {
        let mut headers: Vec<&str> = self
            .head
            .lines()
            .skip(1)
            .filter(|line| !line.is_empty() && !line.starts_with("date: "))
            .collect();
        headers.sort_unstable();
        headers
    }

    /// Returns the headers of a refusal, except the headers of its text, which this function checks. A refusal must
    /// have no headers of the image.
    pub(crate) fn refusal_headers(&self) -> Vec<&str> {
        let words =
            [format!("content-length: {}", self.declared_len()), "content-type: application/json".to_owned()];
        let (words, others): (Vec<_>, Vec<_>) =
            self.headers_without_date().into_iter().partition(|header| words.contains(&(*header).to_owned()));
        assert_eq!(words.len(), 2, "{}", self.head);
        // A HEAD response has no body.
        if !self.body.is_empty() {
            let refusal: serde_json::Value = serde_json::from_slice(&self.body).unwrap();
            assert_eq!(refusal["code"], self.status());
            assert!(!refusal["message"].as_str().unwrap().is_empty());
        }
        others
    }
}
