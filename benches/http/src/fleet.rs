//! Many clients at once, on as many threads as there are processors: each asks for one thing after another on a connection
//! that is kept.
//!
//! A thread with one connection waits in its socket, a thread with many in an epoll.

use std::collections::VecDeque;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow, ensure};
use rustix::buffer::spare_capacity;
use rustix::event::{Timespec, epoll};
use rustix::time::{ClockId, clock_gettime};

use crate::client::{
    Bounds, Connection, PATIENCE, SCRATCH, SILENCE, Sink, Taken, Target, Waiting, begin_get, end_get,
};
use crate::exchange::{Exchange, Wanted};
use crate::head::ContentRange;
use crate::interrupt;
use crate::random::Random;

/// Looks at one connection before it is another one's turn.
const TURNS: usize = 4;
/// How long clients may go on beyond the time that was wanted, for the answers that are under way.
const OVERTIME: Duration = Duration::from_secs(300);

/// What a client asks for, again and again.
#[derive(Debug, Clone)]
pub(crate) enum Script {
    /// The whole file.
    Whole,
    /// Ranges of this length, anywhere.
    Random { len: u64, random: Random },
    /// These ranges in turn, of which so many were asked for.
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
                Ok(Some(*next.context("there is nothing to replay")?))
            }
        }
    }

    /// How often all of its ranges were asked for.
    fn times(&self) -> usize {
        match self {
            Self::Whole | Self::Random { .. } => 0,
            Self::Replay { reads, asked } => asked.checked_div(reads.len()).unwrap_or_default(),
        }
    }
}

/// When clients stop asking.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Until {
    /// After one answer each.
    Once,
    /// After this time; answers that are under way are waited for.
    Elapsed(Duration),
    /// When each has replayed its ranges so many times: the same work for every server, whomever it serves first.
    Replayed(usize),
}

/// A connection with what is asked for over it.
#[derive(Debug)]
pub(crate) struct Client {
    target: Arc<Target>,
    total: u64,
    script: Script,
    connection: Connection,
    exchange: Option<Exchange>,
    /// The last one, and how much of it is the same for each.
    request: Vec<u8>,
    begun: usize,
    asked: Instant,
}

impl Client {
    /// Connects to a file of so many bytes.
    ///
    /// # Errors
    ///
    /// When the server does not answer.
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
        let wanted = match bounds {
            None => Wanted::Whole(self.total),
            Some((first, last)) => Wanted::Part(ContentRange { first, last, total: self.total }),
        };
        self.request.truncate(self.begun);
        end_get(&mut self.request, bounds);
        self.asked = now;
        self.connection.send(&self.request)?;
        self.exchange = Some(Exchange::new(wanted));
        Ok(())
    }
}

/// What clients have seen.
#[derive(Debug, Default)]
pub(crate) struct Tally {
    pub(crate) requests: u64,
    /// Bytes of bodies.
    pub(crate) bytes: u64,
    /// Until the last answer had come.
    pub(crate) elapsed: Duration,
    /// Processor time of the clients themselves.
    pub(crate) cpu: Duration,
    /// From asking to the end of each answer, where everyone asks once.
    pub(crate) latencies: Vec<Duration>,
}

/// Lets all clients ask until they are done.
///
/// # Errors
///
/// When any answer is not the wanted one, or does not come.
pub(crate) fn run(clients: Vec<Client>, until: Until) -> Result<Tally> {
    let threads = std::thread::available_parallelism().map_or(1, usize::from).min(clients.len()).max(1);
    let mut crews: Vec<Vec<Client>> = (0..threads).map(|_| Vec::new()).collect();
    for (number, client) in clients.into_iter().enumerate() {
        if let Some(crew) = crews.get_mut(number % threads) {
            crew.push(client);
        }
    }
    let begun = Instant::now();
    let tallies = std::thread::scope(|scope| {
        let workers: Vec<_> = crews
            .into_iter()
            .map(|crew| scope.spawn(move || Crew::new(crew, until, begun).and_then(Crew::work)))
            .collect();
        let join = |worker: std::thread::ScopedJoinHandle<'_, Result<Tally>>| {
            worker.join().unwrap_or_else(|_| Err(anyhow!("a client has panicked")))
        };
        // All of them are waited for, whatever came of the first.
        workers.into_iter().map(join).collect::<Vec<_>>()
    });
    let mut all = Tally { elapsed: begun.elapsed(), ..Tally::default() };
    for tally in tallies {
        let tally = tally?;
        all.requests += tally.requests;
        all.bytes += tally.bytes;
        all.cpu += tally.cpu;
        all.latencies.extend(tally.latencies);
    }
    Ok(all)
}

/// The clients of one thread.
struct Crew {
    clients: Vec<Client>,
    /// None where the only client waits by itself.
    epoll: Option<OwnedFd>,
    until: Until,
    begun: Instant,
    busy: usize,
    heard: Instant,
    tally: Tally,
}

impl Crew {
    fn new(clients: Vec<Client>, until: Until, begun: Instant) -> Result<Self> {
        let tally = Tally::default();
        let mut crew = Self { busy: 0, clients, epoll: None, until, begun, heard: begun, tally };
        if crew.clients.len() > 1 {
            crew.epoll = Some(epoll::create(epoll::CreateFlags::CLOEXEC)?);
        }
        for number in 0..crew.clients.len() {
            crew.watch(number)?;
        }
        Ok(crew)
    }

    fn waiting(&self) -> Waiting {
        if self.epoll.is_some() { Waiting::Polled } else { Waiting::Blocks }
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
        ensure!(self.heard.elapsed() < SILENCE, "nothing has come for {SILENCE:?}");
        ensure!(self.begun.elapsed() < most, "answers have not come within {most:?}");
        Ok(())
    }

    fn wait(&self, events: &mut Vec<epoll::Event>, ready: &mut VecDeque<usize>) -> Result<()> {
        let Some(epoll) = &self.epoll else {
            ready.push_back(0);
            return Ok(());
        };
        let timeout = Timespec { tv_sec: 0, tv_nsec: i64::from(PATIENCE.subsec_nanos()) };
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

    /// Takes what has come for one client.
    fn turn(&mut self, number: usize, scratch: &mut [u8]) -> Result<()> {
        for _ in 0..TURNS {
            let client = self.clients.get_mut(number).context("no such client")?;
            let Some(exchange) = &mut client.exchange else { return Ok(()) };
            let taken = client.connection.take(exchange, scratch, &mut Sink::Discard)?;
            if taken != Taken::Nothing {
                self.heard = Instant::now();
            }
            if exchange.is_done() {
                return self.answered(number, self.heard);
            }
            if taken != Taken::Full {
                break;
            }
        }
        Ok(())
    }

    /// The answer has come, now.
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

/// Processor time of this thread.
fn thread_time() -> Duration {
    Duration::try_from(clock_gettime(ClockId::ThreadCPUTime)).unwrap_or_default()
}
