//! Notifies a closing TCP connection when the client has acknowledged the last bytes.
//!
//! The kernel has no event for this acknowledgement. But after `shutdown`, the acknowledgement of the last byte changes
//! the state of the socket (to FIN-WAIT-2, TIME-WAIT or CLOSED), and so does a reset. Each change of the state wakes an
//! epoll instance that watches the socket.
//!
//! tokio's readiness is not sufficient, so this module has its own epoll instance. With tokio, a socket stays ready
//! once both directions are shut down. If the client closes its side first, the connection would be polled without a
//! pause.

use std::collections::HashMap;
use std::io;
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, LazyLock, Mutex, MutexGuard, PoisonError};
use std::task::Waker;
use std::thread;

use rustix::buffer::spare_capacity;
use rustix::event::epoll;
use rustix::io::Errno;
use tokio::net::TcpStream;

/// Maximum number of changes to read from the kernel in one call. Further changes are read by the next call.
const EVENTS: usize = 64;

/// Wakes a task whenever its socket changes, until this value is dropped or the socket is closed.
#[derive(Debug)]
pub(super) struct SocketChanges {
    watch: SocketWatcher,
    number: u64,
}

/// The watched sockets and the thread that waits for their changes. One instance serves the whole process.
#[derive(Clone, Debug)]
struct SocketWatcher(Arc<WatchedSockets>);

#[derive(Debug)]
struct WatchedSockets {
    epoll: OwnedFd,
    tasks: Mutex<HashMap<u64, Waker>>,
    next: AtomicU64,
}

impl SocketChanges {
    /// Watches a socket for a task. The task is woken once at the start, so it may check the socket before or after
    /// this call.
    ///
    /// # Errors
    ///
    /// Returns an error if the kernel cannot watch the socket, or cannot start the thread.
    pub(super) fn watch(socket: &TcpStream, task: &Waker) -> io::Result<Self> {
        let watch = SocketWatcher::for_process()?;
        let number = watch.0.next.fetch_add(1, Ordering::Relaxed);
        watch.lock_tasks().insert(number, task.clone());
        let changes = Self { watch, number };
        let events = epoll::EventFlags::OUT | epoll::EventFlags::ET;
        epoll::add(&changes.watch.0.epoll, socket, epoll::EventData::new_u64(number), events)?;
        Ok(changes)
    }
}

impl Drop for SocketChanges {
    /// The kernel itself stops watching when the socket is closed.
    fn drop(&mut self) {
        self.watch.lock_tasks().remove(&self.number);
    }
}

impl SocketWatcher {
    fn for_process() -> io::Result<Self> {
        static WATCH: LazyLock<io::Result<SocketWatcher>> = LazyLock::new(SocketWatcher::start);
        WATCH.as_ref().map(Self::clone).map_err(|error| io::Error::new(error.kind(), error.to_string()))
    }

    fn start() -> io::Result<Self> {
        let epoll = epoll::create(epoll::CreateFlags::CLOEXEC)?;
        let watch =
            Self(Arc::new(WatchedSockets { epoll, tasks: Mutex::default(), next: AtomicU64::new(0) }));
        let of_thread = watch.clone();
        thread::Builder::new().name("closing".to_owned()).spawn(move || of_thread.run())?;
        Ok(watch)
    }

    /// Waits for changes and wakes the tasks of the changed sockets.
    fn run(&self) {
        let mut events = Vec::with_capacity(EVENTS);
        loop {
            match epoll::wait(&self.0.epoll, spare_capacity(&mut events), None) {
                Ok(_) | Err(Errno::INTR) => {}
                Err(error) => {
                    tracing::error!(%error, "cannot watch closing connections any more, the stall timeout closes them");
                    return;
                }
            }
            let tasks = self.lock_tasks();
            for event in events.drain(..) {
                if let Some(task) = tasks.get(&event.data.u64()) {
                    task.wake_by_ref();
                }
            }
        }
    }

    fn lock_tasks(&self) -> MutexGuard<'_, HashMap<u64, Waker>> {
        self.0.tasks.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Returns `true` if the socket is no longer connected, after a reset or after both sides have acknowledged the end of
/// the other side. The kernel then holds no bytes for the client, although it still reports their number.
pub(super) fn is_closed(socket: &TcpStream) -> bool {
    socket.peer_addr().is_err_and(|error| error.kind() == io::ErrorKind::NotConnected)
}

#[cfg(test)]
mod tests {
    use std::future::poll_fn;
    use std::net::Ipv4Addr;
    use std::task::Poll;

    use rustix::net::Shutdown;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::{TcpListener, TcpSocket};

    use super::*;
    use crate::sys::unacked_bytes;

    const LEN: usize = 256 << 10;

    /// Returns a client with a small receive buffer, and a socket that has sent it more bytes than fit.
    async fn slow_reader_pair() -> (TcpStream, TcpStream) {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
        let client = TcpSocket::new_v4().unwrap();
        client.set_recv_buffer_size(8192).unwrap();
        let client = client.connect(listener.local_addr().unwrap()).await.unwrap();
        let mut socket = listener.accept().await.unwrap().0;
        socket.write_all(&[7; LEN]).await.unwrap();
        (client, socket)
    }

    /// Waits until the client has acknowledged everything or has disconnected. Returns the number of checks.
    async fn checks_until_closed(socket: &TcpStream) -> usize {
        let (mut checks, mut changes) = (0, None);
        poll_fn(|context| {
            checks += 1;
            if unacked_bytes(socket).unwrap() == 0 || is_closed(socket) {
                return Poll::Ready(());
            }
            changes.get_or_insert_with(|| SocketChanges::watch(socket, context.waker()).unwrap());
            Poll::Pending
        })
        .await;
        checks
    }

    #[tokio::test]
    async fn last_acknowledgement_wakes_the_task() {
        for is_half_closed in [false, true] {
            let (mut client, socket) = slow_reader_pair().await;
            if is_half_closed {
                client.shutdown().await.unwrap();
            }
            rustix::net::shutdown(&socket, Shutdown::Write).unwrap();
            let closing = tokio::spawn(async move { checks_until_closed(&socket).await });
            let mut bytes = Vec::new();
            client.read_to_end(&mut bytes).await.unwrap();
            assert_eq!(bytes.len(), LEN);
            let checks = closing.await.unwrap();
            assert!(checks < 10, "{checks} checks: the socket was polled without a pause");
        }
    }

    #[tokio::test]
    async fn reset_wakes_the_task_and_closes_the_socket() {
        let (client, socket) = slow_reader_pair().await;
        rustix::net::shutdown(&socket, Shutdown::Write).unwrap();
        assert!(unacked_bytes(&socket).unwrap() > 0 && !is_closed(&socket));
        let closing = tokio::spawn(async move {
            checks_until_closed(&socket).await;
            (unacked_bytes(&socket).unwrap(), is_closed(&socket))
        });
        tokio::task::yield_now().await;
        client.set_zero_linger().unwrap();
        drop(client);
        let (unsent, is_over) = closing.await.unwrap();
        assert!(is_over && unsent > 0, "{unsent}");
    }
}
