//! Many concurrent clients, on one thread per processor. Each sends one request after another on a keep-alive
//! connection.
//!
//! A thread with one connection waits in its socket, and a thread with many connections in epoll.

use std::collections::VecDeque;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow, ensure};
use rustix::buffer::spare_capacity;
use rustix::event::{Timespec, epoll};
use rustix::time::{ClockId, clock_gettime};

use crate::client::{
    Bounds, Connection, POLL_TIMEOUT, RESPONSE_TIMEOUT, ReadResult, SCRATCH, Sink, Target, WaitMode,
    begin_get, end_get,
};
use crate::exchange::{Exchange, ExpectedResponse};
use crate::head::ContentRange;
use crate::interrupt;
use crate::random::Random;

/// Number of reads from one connection before the next connection gets its turn.
const TURNS: usize = 4;
/// Maximum time for which clients may run past the end of the measurement to finish pending responses.
const OVERTIME: Duration = Duration::from_secs(300);

/// The requests that a client repeats.
#[derive(Debug, Clone)]
pub(crate) enum Script {
    /// The whole file.
    Whole,
    /// Ranges of this length at random offsets.
    Random { len: u64, random: Random },
    /// These ranges in turn. `asked` is the number of requests so far.
    Replay { reads: Arc<[Bounds]>, asked: usize },
}

impl Script {
    fn next(&mut self, total: u64) -> Result<Option<Bounds>> {
        match self {
            Self::Whole => Ok(None),
            Self::Random { len, random } => {
                let len = (*len).clamp(1, total.max(1));
                let first = random.below(total.saturating_sub(len) + 1);
                Ok(Some((first, first + len - 1)))
            }
            Self::Replay { reads, asked } => {
                let next = asked.checked_rem(reads.len()).and_then(|next| reads.get(next));
                *asked += 1;
                Ok(Some(*next.context("the trace is empty")?))
            }
        }
    }

    /// Returns how often the client has requested all of its ranges.
    fn times(&self) -> usize {
        match self {
            Self::Whole | Self::Random { .. } => 0,
            Self::Replay { reads, asked } => asked.checked_div(reads.len()).unwrap_or_default(),
        }
    }
}

/// The condition under which clients stop.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Until {
    /// After one response each.
    Once,
    /// After this time and the end of pending responses.
    Elapsed(Duration),
    /// After each client has replayed its ranges this many times, so that every server does the same work.
    Replayed(usize),
}

#[derive(Debug)]
pub(crate) struct Client {
    target: Arc<Target>,
    total: u64,
    script: Script,
    connection: Connection,
    exchange: Option<Exchange>,
    /// The last request, and the length of the prefix that all requests share.
    request: Vec<u8>,
    begun: usize,
    asked: Instant,
}

impl Client {
    /// Connects to a file of `len` bytes.
    ///
    /// # Errors
    ///
    /// Returns an error if the connection fails.
    pub(crate) fn open(target: &Arc<Target>, total: u64, script: Script) -> Result<Self> {
        let mut request = Vec::new();
        begin_get(&mut request, target);
        Ok(Self {
            target: Arc::clone(target),
            total,
            script,
            connection: Connection::open(target)?,
            exchange: None,
            begun: request.len(),
            request,
            asked: Instant::now(),
        })
    }

    fn ask(&mut self, now: Instant) -> Result<()> {
        let bounds = self.script.next(self.total)?;
        let expected = match bounds {
            None => ExpectedResponse::Whole(self.total),
            Some((first, last)) => ExpectedResponse::Part(ContentRange { first, last, total: self.total }),
        };
        self.request.truncate(self.begun);
        end_get(&mut self.request, bounds);
        self.asked = now;
        self.connection.send(&self.request)?;
        self.exchange = Some(Exchange::new(expected));
        Ok(())
    }
}

#[derive(Debug, Default)]
pub(crate) struct Tally {
    pub(crate) requests: u64,
    /// Bytes of all bodies.
    pub(crate) bytes: u64,
    /// Time until the end of the last response.
    pub(crate) elapsed: Duration,
    /// CPU time of the clients.
    pub(crate) cpu: Duration,
    /// Time from request to the end of the response, if every client sends one request.
    pub(crate) latencies: Vec<Duration>,
}

/// Runs all clients until they are done.
///
/// # Errors
///
/// Returns an error if a response is missing or not the expected one.
pub(crate) fn run(clients: Vec<Client>, until: Until) -> Result<Tally> {
    let threads = std::thread::available_parallelism().map_or(1, usize::from).min(clients.len()).max(1);
    let mut crews: Vec<Vec<Client>> = (0..threads).map(|_| Vec::new()).collect();
    for (number, client) in clients.into_iter().enumerate() {
        if let Some(crew) = crews.get_mut(number % threads) {
            crew.push(client);
        }
    }
    let start = Instant::now();
    let tallies = std::thread::scope(|scope| {
        let workers: Vec<_> = crews
            .into_iter()
            .map(|crew| scope.spawn(move || ClientGroup::new(crew, until, start).and_then(ClientGroup::work)))
            .collect();
        let join = |worker: std::thread::ScopedJoinHandle<'_, Result<Tally>>| {
            worker.join().unwrap_or_else(|_| Err(anyhow!("a client panicked")))
        };
        workers.into_iter().map(join).collect::<Vec<_>>()
    });
    let mut all = Tally { elapsed: start.elapsed(), ..Tally::default() };
    for tally in tallies {
        let tally = tally?;
        all.requests += tally.requests;
        all.bytes += tally.bytes;
        all.cpu += tally.cpu;
        all.latencies.extend(tally.latencies);
    }
    Ok(all)
}

struct ClientGroup {
    clients: Vec<Client>,
    /// `None` for a single client, which waits in its socket.
    epoll: Option<OwnedFd>,
    until: Until,
    begun: Instant,
    busy: usize,
    heard: Instant,
    tally: Tally,
}

impl ClientGroup {
    fn new(clients: Vec<Client>, until: Until, start: Instant) -> Result<Self> {
        let tally = Tally::default();
        let mut crew = Self { busy: 0, clients, epoll: None, until, begun: start, heard: start, tally };
        if crew.clients.len() > 1 {
            crew.epoll = Some(epoll::create(epoll::CreateFlags::CLOEXEC)?);
        }
        for number in 0..crew.clients.len() {
            crew.watch(number)?;
        }
        Ok(crew)
    }

    fn waiting(&self) -> WaitMode {
        if self.epoll.is_some() { WaitMode::Polled } else { WaitMode::Blocks }
    }

    fn watch(&self, number: usize) -> Result<()> {
        let client = self.clients.get(number).context("no such client")?;
        client.connection.set_waiting(self.waiting())?;
        if let Some(epoll) = &self.epoll {
            let data = epoll::EventData::new_u64(u64::try_from(number)?);
            epoll::add(epoll, client.connection.socket(), data, epoll::EventFlags::IN)?;
        }
        Ok(())
    }

    fn work(mut self) -> Result<Tally> {
        let before = thread_time();
        let mut scratch = vec![0; SCRATCH];
        for client in &mut self.clients {
            client.ask(Instant::now())?;
            self.busy += 1;
        }
        let mut events = Vec::with_capacity(self.clients.len().min(256));
        let mut ready = VecDeque::new();
        while self.busy > 0 {
            interrupt::check()?;
            self.wait(&mut events, &mut ready)?;
            while let Some(number) = ready.pop_front() {
                self.turn(number, &mut scratch)?;
            }
            self.check_time()?;
        }
        self.tally.cpu = thread_time().saturating_sub(before);
        Ok(self.tally)
    }

    fn check_time(&self) -> Result<()> {
        let most = OVERTIME
            + match self.until {
                Until::Once | Until::Replayed(_) => Duration::ZERO,
                Until::Elapsed(time) => time,
            };
        ensure!(self.heard.elapsed() < RESPONSE_TIMEOUT, "no bytes received for {RESPONSE_TIMEOUT:?}");
        ensure!(self.begun.elapsed() < most, "responses are missing after {most:?}");
        Ok(())
    }

    fn wait(&self, events: &mut Vec<epoll::Event>, ready: &mut VecDeque<usize>) -> Result<()> {
        let Some(epoll) = &self.epoll else {
            ready.push_back(0);
            return Ok(());
        };
        let timeout = Timespec { tv_sec: 0, tv_nsec: i64::from(POLL_TIMEOUT.subsec_nanos()) };
        events.clear();
        match epoll::wait(epoll, spare_capacity(events), Some(&timeout)) {
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
        for event in events {
            ready.push_back(usize::try_from(event.data.u64())?);
        }
        Ok(())
    }

    fn turn(&mut self, number: usize, scratch: &mut [u8]) -> Result<()> {
        for _ in 0..TURNS {
            let client = self.clients.get_mut(number).context("no such client")?;
            let Some(exchange) = &mut client.exchange else { return Ok(()) };
            let result = client.connection.read_some(exchange, scratch, &mut Sink::Discard)?;
            if result != ReadResult::Nothing {
                self.heard = Instant::now();
            }
            if exchange.is_done() {
                return self.answered(number, self.heard);
            }
            if result != ReadResult::Full {
                break;
            }
        }
        Ok(())
    }

    fn answered(&mut self, number: usize, now: Instant) -> Result<()> {
        let client = self.clients.get_mut(number).context("no such client")?;
        let Some(exchange) = client.exchange.take() else { return Ok(()) };
        let latency = now.saturating_duration_since(client.asked);
        self.tally.requests += 1;
        self.tally.bytes += exchange.len();
        let goes_on = match self.until {
            Until::Once => {
                self.tally.latencies.push(latency);
                false
            }
            Until::Elapsed(time) => now.saturating_duration_since(self.begun) < time,
            Until::Replayed(times) => client.script.times() < times,
        };
        if !goes_on {
            self.busy -= 1;
            return Ok(());
        }
        if exchange.closes() {
            client.connection = Connection::open(&client.target)?;
            self.watch(number)?;
        }
        self.clients.get_mut(number).context("no such client")?.ask(now)
    }
}

/// Returns the CPU time of this thread.
fn thread_time() -> Duration {
    Duration::try_from(clock_gettime(ClockId::ThreadCPUTime)).unwrap_or_default()
}
