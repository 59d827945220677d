//! A connection whose every byte a test writes and reads itself.

use std::io::{BufRead, BufReader, ErrorKind, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::time::Duration;

/// Nothing takes a tenth of it.
const PATIENCE: Duration = Duration::from_secs(30);

/// A connection.
#[derive(Debug)]
pub(crate) struct Connection {
    stream: BufReader<TcpStream>,
}

/// An answer as it came.
#[derive(Debug)]
pub(crate) struct Answer {
    /// The status line and all headers.
    pub(crate) head: String,
    pub(crate) body: Vec<u8>,
}

impl Connection {
    pub(crate) fn new(address: SocketAddr) -> Self {
        Self::over(TcpStream::connect(address).unwrap())
    }

    /// One that there is already.
    pub(crate) fn over(stream: TcpStream) -> Self {
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        stream.set_write_timeout(Some(PATIENCE)).unwrap();
        Self { stream: BufReader::new(stream) }
    }

    /// What the kernel knows of it.
    pub(crate) fn stream(&self) -> &TcpStream {
        self.stream.get_ref()
    }

    /// Writes bytes as they are.
    pub(crate) fn write(&mut self, text: impl AsRef<[u8]>) {
        self.stream.get_mut().write_all(text.as_ref()).unwrap();
    }

    /// Writes a request with these headers, one a line.
    pub(crate) fn request(&mut self, line: &str, headers: &str) {
        let headers: String = headers.lines().map(|line| format!("{}\r\n", line.trim())).collect();
        self.write(format!("{line} HTTP/1.1\r\nHost: test\r\n{headers}\r\n"));
    }

    /// The answer to a request.
    pub(crate) fn ask(&mut self, line: &str, headers: &str) -> Answer {
        self.request(line, headers);
        self.answer(if line.starts_with("HEAD ") { Some(0) } else { None })
    }

    /// Reads the head of an answer.
    pub(crate) fn head(&mut self) -> String {
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

    /// Reads an answer, with as many bytes as it says or as a test knows better.
    pub(crate) fn answer(&mut self, len: Option<usize>) -> Answer {
        let mut answer = Answer { head: self.head(), body: Vec::new() };
        let has_none = answer.status() == 304 || answer.status() < 200;
        let len = len.unwrap_or_else(|| if has_none { 0 } else { answer.len() });
        answer.body = self.take(len);
        answer
    }

    /// Reads so many bytes.
    pub(crate) fn take(&mut self, len: usize) -> Vec<u8> {
        let mut bytes = vec![0; len];
        self.stream.read_exact(&mut bytes).unwrap();
        bytes
    }

    /// What there is next, so many bytes at most, unless the connection was cut.
    pub(crate) fn some(&mut self, most: usize) -> Option<Vec<u8>> {
        let mut bytes = vec![0; most];
        match self.stream.read(&mut bytes) {
            Ok(len) => bytes.truncate(len),
            Err(error) if error.kind() == ErrorKind::ConnectionReset => return None,
            Err(error) => panic!("{error}"),
        }
        assert!(!bytes.is_empty(), "an orderly end");
        Some(bytes)
    }

    /// Everything up to the end of the connection, and whether that was an orderly one.
    pub(crate) fn rest(&mut self) -> (Vec<u8>, bool) {
        let mut bytes = Vec::new();
        match self.stream.read_to_end(&mut bytes) {
            Ok(_) => (bytes, true),
            Err(error) if error.kind() == ErrorKind::ConnectionReset => (bytes, false),
            Err(error) => panic!("{error}"),
        }
    }

    /// Sends no more.
    pub(crate) fn finish(&mut self) {
        self.stream.get_ref().shutdown(Shutdown::Write).unwrap();
    }

    /// Whether the server closed it, after what it sent was read.
    pub(crate) fn is_closed(&mut self) -> bool {
        self.stream.get_ref().set_read_timeout(Some(Duration::from_millis(100))).unwrap();
        match self.stream.fill_buf() {
            Ok(bytes) => bytes.is_empty(),
            Err(error) => error.kind() == ErrorKind::ConnectionReset,
        }
    }
}

impl Answer {
    pub(crate) fn status(&self) -> u16 {
        self.head.split(' ').nth(1).unwrap().parse().unwrap()
    }

    /// A header, which must not be there twice.
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        let is_it = |(key, _): &(&str, &str)| key.eq_ignore_ascii_case(name);
        let mut values = self.head.lines().filter_map(|line| line.split_once(": ")).filter(is_it);
        let value = values.next().map(|(_, value)| value);
        assert!(values.next().is_none(), "{name} twice: {}", self.head);
        value
    }

    /// What it says its length is.
    pub(crate) fn len(&self) -> usize {
        self.header("content-length").unwrap_or_else(|| panic!("no length: {}", self.head)).parse().unwrap()
    }

    /// Headers but for the date, which differs from answer to answer.
    pub(crate) fn headers(&self) -> Vec<&str> {
        let mut headers: Vec<&str> = self
            .head
            .lines()
            .skip(1)
            .filter(|line| !line.is_empty() && !line.starts_with("date: "))
            .collect();
        headers.sort_unstable();
        headers
    }

    /// Headers of an answer that is none of the image, but what belongs to its words, which are looked at here.
    pub(crate) fn headers_of_refusal(&self) -> Vec<&str> {
        let words = [format!("content-length: {}", self.len()), "content-type: application/json".to_owned()];
        let (words, others): (Vec<_>, Vec<_>) =
            self.headers().into_iter().partition(|header| words.contains(&(*header).to_owned()));
        assert_eq!(words.len(), 2, "{}", self.head);
        // A HEAD has none.
        if !self.body.is_empty() {
            let said: serde_json::Value = serde_json::from_slice(&self.body).unwrap();
            assert_eq!(said["code"], self.status());
            assert!(!said["message"].as_str().unwrap().is_empty());
        }
        others
    }
}
