//! The threads that own the connections, and the work they are given.
//!
//! Writes of many tasks that wait at the same time share one transaction where the database has one writer
//! anyway, and so one wait for the disk. A piece of work that fails takes nothing of the others with it.

use super::StoreError;
use super::sql::{SqlError, Statements};
use crate::fault::Step;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};
use tokio::sync::oneshot;

/// What a database offers beside statements. A connection is used by one thread.
pub(super) trait Connection: Statements + Send {
    /// Begins a transaction that writes. A durable one is on the disk when its commit returns; another may
    /// be lost with the power of the machine, never with a process.
    fn begin(&mut self, durable: bool) -> Result<(), SqlError>;
    /// Begins a transaction that only reads.
    fn begin_reading(&mut self) -> Result<(), SqlError>;
    fn commit(&mut self) -> Result<(), SqlError>;
    /// Undoes what was begun; without a transaction it does nothing.
    fn rollback(&mut self);
    /// Makes the connection anew where it has ended.
    fn mend(&mut self) -> Result<(), SqlError> {
        Ok(())
    }
}

/// Whether a write must survive the loss of the machine's power, where that ends this process as well.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Durability {
    /// Without it something would be lost that nothing else finds again.
    Disk,
    /// Found again by other means, for example by the name of a creation that is on the disk.
    Process,
}

/// At most so many pieces of work in one transaction: enough that the wait for the disk is shared by all
/// that come in meanwhile, few enough that none waits long for the others.
const BATCH: usize = 64;

/// The first pause before a connection that was lost is made again; it doubles up to the longest.
const AGAIN: Duration = Duration::from_millis(20);
const AGAIN_LONGEST: Duration = Duration::from_millis(500);

/// Several tries for transactions that got in each other's way; each time one of them came through.
const TRIES: usize = 20;

/// What one thread is to do.
pub(super) struct Job {
    pub(super) writes: Option<Durability>,
    pub(super) step: Option<Step>,
    pub(super) work: Box<dyn Piece>,
}

/// One piece of work and whoever waits for it.
pub(super) trait Piece: Send {
    /// Does it; may be called again after a rollback.
    fn attempt(&mut self, on: &mut dyn Statements) -> Result<(), Trouble>;
    /// Gives the answer of the last attempt, or this error.
    fn finish(self: Box<Self>, failed: Option<SqlError>);
}

/// Why an attempt is rolled back.
pub(super) enum Trouble {
    /// It refused by itself; its answer is ready.
    Refused,
    /// The database failed.
    Failed(SqlError),
}

/// What a piece of work may answer: its own refusals beside the database's.
#[derive(Debug)]
pub(crate) enum Failure {
    Refused(StoreError),
    Sql(SqlError),
}

impl From<SqlError> for Failure {
    fn from(error: SqlError) -> Self {
        Failure::Sql(error)
    }
}

impl From<StoreError> for Failure {
    fn from(error: StoreError) -> Self {
        Failure::Refused(error)
    }
}

/// A piece of work from a closure.
struct Closure<T, F> {
    doing: &'static str,
    work: F,
    answer: Option<Result<T, StoreError>>,
    waiting: oneshot::Sender<Result<T, StoreError>>,
}

impl<T, F> Piece for Closure<T, F>
where
    T: Send,
    F: FnMut(&mut dyn Statements) -> Result<T, Failure> + Send,
{
    fn attempt(&mut self, on: &mut dyn Statements) -> Result<(), Trouble> {
        match (self.work)(on) {
            Ok(answer) => {
                self.answer = Some(Ok(answer));
                Ok(())
            }
            Err(Failure::Refused(error)) => {
                self.answer = Some(Err(error));
                Err(Trouble::Refused)
            }
            Err(Failure::Sql(error)) => Err(Trouble::Failed(error)),
        }
    }

    fn finish(self: Box<Self>, failed: Option<SqlError>) {
        let Closure { doing, answer, waiting, .. } = *self;
        let ended = || Err(StoreError::Ended { doing });
        let answer = failed.map_or_else(|| answer.unwrap_or_else(ended), |error| Err(error.doing(doing)));
        // Whoever no longer waits finds it in the store.
        waiting.send(answer).ok();
    }
}

/// Where work is handed in.
#[derive(Clone, Debug)]
pub(super) struct Queue(Sender<Job>);

impl std::fmt::Debug for Job {
    fn fmt(&self, to: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        to.debug_struct("Job").field("step", &self.step).finish_non_exhaustive()
    }
}

impl Queue {
    /// Starts a thread for each connection. They end when nobody can hand in work any more.
    pub(super) fn new(connections: Vec<Box<dyn Connection>>, patience: Duration) -> std::io::Result<Queue> {
        let (sender, receiver) = channel();
        let together = if connections.len() == 1 { BATCH } else { 1 };
        let receiver = Arc::new(Mutex::new(receiver));
        for connection in connections {
            let receiver = receiver.clone();
            let worker = Worker { connection, patience, together };
            std::thread::Builder::new().name("lease-store".into()).spawn(move || worker.run(&receiver))?;
        }
        Ok(Queue(sender))
    }

    /// Hands in work and waits for its answer.
    pub(super) async fn hand_in<T: Send + 'static>(
        &self,
        doing: &'static str,
        writes: Option<Durability>,
        step: Option<Step>,
        work: impl FnMut(&mut dyn Statements) -> Result<T, Failure> + Send + 'static,
    ) -> Result<T, StoreError> {
        let (waiting, answer) = oneshot::channel();
        let work = Box::new(Closure { doing, work, answer: None, waiting });
        let ended = || StoreError::Ended { doing };
        self.0.send(Job { writes, step, work }).map_err(|_| ended())?;
        answer.await.map_err(|_| ended())?
    }
}

struct Worker {
    connection: Box<dyn Connection>,
    /// How long a lost connection is tried to be made again.
    patience: Duration,
    together: usize,
}

impl Worker {
    fn run(mut self, receiver: &Mutex<Receiver<Job>>) {
        while let Some(batch) = take(receiver, self.together) {
            self.see_to(batch);
        }
    }

    /// Does a batch in one transaction, or piece by piece where that fails.
    fn see_to(&mut self, mut batch: Vec<Job>) {
        for job in &batch {
            job.step.inspect(|step| step.before());
        }
        let failed = match self.try_together(&mut batch) {
            Ok(failures) => failures,
            Err(_) if batch.len() > 1 => {
                let alone = |job| match self.try_together(std::slice::from_mut(job)) {
                    Ok(mut failed) => failed.pop().flatten(),
                    Err(error) => Some(error),
                };
                batch.iter_mut().map(alone).collect()
            }
            Err(error) => vec![Some(error)],
        };
        for (job, failed) in batch.into_iter().zip(failed) {
            job.step.inspect(|step| step.after());
            job.work.finish(failed);
        }
    }

    /// One transaction, again while others are in the way of it or the connection is lost: the failure of
    /// each piece, or why the whole was not done.
    fn try_together(&mut self, batch: &mut [Job]) -> Result<Vec<Option<SqlError>>, SqlError> {
        let until = Instant::now() + self.patience;
        let (mut tries, mut pause) = (0, AGAIN);
        loop {
            let outcome = self.once(batch);
            match outcome {
                Ok(failures) => return Ok(failures),
                Err(error) => {
                    self.connection.rollback();
                    tries += 1;
                    match error {
                        SqlError::Again if tries < TRIES => std::thread::sleep(AGAIN),
                        SqlError::Lost(_) if Instant::now() < until => {
                            std::thread::sleep(pause);
                            pause = (pause * 2).min(AGAIN_LONGEST);
                        }
                        error => return Err(error),
                    }
                }
            }
        }
    }

    fn once(&mut self, batch: &mut [Job]) -> Result<Vec<Option<SqlError>>, SqlError> {
        self.connection.mend()?;
        let writes = batch.iter().any(|job| job.writes.is_some());
        match writes {
            true => self.connection.begin(batch.iter().any(|it| it.writes == Some(Durability::Disk)))?,
            false => self.connection.begin_reading()?,
        }
        let alone = batch.len() == 1;
        let mut failures = Vec::with_capacity(batch.len());
        for job in batch.iter_mut() {
            if !alone {
                self.connection.execute("SAVEPOINT piece", &[])?;
            }
            let trouble = match job.work.attempt(&mut *self.connection) {
                Ok(()) => {
                    failures.push(None);
                    if !alone {
                        self.connection.execute("RELEASE piece", &[])?;
                    }
                    continue;
                }
                Err(trouble) => trouble,
            };
            failures.push(match trouble {
                Trouble::Refused => None,
                Trouble::Failed(error) if alone => return Err(error),
                Trouble::Failed(error @ (SqlError::Conflict | SqlError::Unreadable(_))) => Some(error),
                // Of the whole transaction; each is tried alone.
                Trouble::Failed(error) => return Err(error),
            });
            if alone {
                self.connection.rollback();
                return Ok(failures);
            }
            self.connection.execute("ROLLBACK TO piece", &[])?;
            self.connection.execute("RELEASE piece", &[])?;
        }
        self.connection.commit()?;
        Ok(failures)
    }
}

/// The next pieces of work: the first that comes and whatever waits behind it. None when no more can come.
fn take(receiver: &Mutex<Receiver<Job>>, most: usize) -> Option<Vec<Job>> {
    let receiver = receiver.lock().unwrap_or_else(PoisonError::into_inner);
    let mut batch = vec![receiver.recv().ok()?];
    while batch.len() < most
        && let Ok(job) = receiver.try_recv()
    {
        batch.push(job);
    }
    Some(batch)
}
