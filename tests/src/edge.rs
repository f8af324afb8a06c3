//! A guest with a reach, and servers on loopback for it to talk to.

use crate::act::command;
use crate::{bytes, context, limits};
use leasehold_authority::audit::{Entry, Memory};
use leasehold_authority::facility::{ConnectFacility, EgressFacility, HttpFacility, StateFacility};
use leasehold_authority::http::{Addresses, HttpEdge, HttpSettings, Resolve, System};
use leasehold_authority::secret::resolve::{Consumer, Purpose, ResolveError, Resolver, Resolving};
use leasehold_authority::state::MemoryState;
use leasehold_authority::{Reach, Services};
use leasehold_contract::authority::Policy;
use leasehold_contract::secret::{Stored, fields};
use leasehold_engine::bindings::types::Context;
use leasehold_engine::call::stream::Output;
use leasehold_engine::{
    Bill, CallError, CallOptions, Engine, EngineOptions, Facility, Finished, Hook, Limit, Provider,
};
use secrecy::SecretString;
use serde_json::{Value, json};
use std::collections::HashMap;
use std::net::{IpAddr, SocketAddr};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

/// Names that tests give addresses; each look-up takes the next, and the last one stays.
#[derive(Default)]
pub struct Names(Mutex<HashMap<String, Vec<IpAddr>>>, System);

/// The names of this process.
pub fn names() -> &'static Arc<Names> {
    static NAMES: OnceLock<Arc<Names>> = OnceLock::new();
    NAMES.get_or_init(Arc::default)
}

impl Names {
    /// Gives a name addresses, one for each look-up.
    pub fn give(&self, name: &str, addresses: &[&str]) {
        let addresses = addresses.iter().map(|text| text.parse().expect("an address")).collect();
        self.0.lock().unwrap_or_else(PoisonError::into_inner).insert(name.into(), addresses);
    }
}

impl Resolve for Names {
    fn addresses<'a>(&'a self, host: &'a str) -> Addresses<'a> {
        let mut names = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        match names.get_mut(host) {
            None => self.1.addresses(host),
            Some(left) => {
                let next = if left.len() > 1 { left.remove(0) } else { left[0] };
                Box::pin(async move { Ok(vec![next]) })
            }
        }
    }
}

/// An engine whose edge is set up like this, and the fixture `reach` loaded in it.
pub struct Edge {
    provider: Provider,
}

impl Edge {
    /// Makes one.
    pub fn new(settings: HttpSettings) -> Edge {
        let edge =
            Arc::new(HttpEdge::with_resolver(settings, names().clone()).expect("the settings are good"));
        let facilities: Vec<Arc<dyn Facility>> = vec![
            Arc::new(HttpFacility::new(edge.clone())),
            Arc::new(ConnectFacility::new(edge)),
            Arc::new(StateFacility),
            Arc::new(EgressFacility),
        ];
        let options =
            EngineOptions { facilities: facilities.into_iter().collect(), ..EngineOptions::default() };
        let engine = Engine::new(options).expect("the engine runs on this machine");
        let everything = leasehold_contract::authority::Permission::ALL.iter().copied().collect();
        let compiled = engine.load(&bytes("reach")).expect("the fixture is a component");
        Edge { provider: compiled.link(&everything).expect("the host has all it wants") }
    }

    /// The one that most tests share.
    pub fn shared() -> &'static Edge {
        static EDGE: OnceLock<Edge> = OnceLock::new();
        EDGE.get_or_init(|| Edge::new(HttpSettings::default()))
    }

    /// A guest that is granted these things beside clocks and state.
    pub fn guest(&self, grants: &[&str]) -> Guest {
        let grants =
            ["time", "state"].iter().chain(grants).map(|text| text.parse().expect("a grant")).collect();
        Guest {
            provider: self.provider.clone(),
            policy: Arc::new(Policy::new("reach", None, grants)),
            secrets: Arc::default(),
            state: Arc::default(),
            audit: Arc::default(),
            config: "{}".into(),
            tenant: "tenant".into(),
            options: CallOptions::default(),
        }
    }
}

/// A guest with a reach.
#[derive(Clone)]
pub struct Guest {
    provider: Provider,
    policy: Arc<Policy>,
    secrets: Arc<Vault>,
    state: Arc<MemoryState>,
    audit: Arc<Memory>,
    config: String,
    tenant: String,
    options: CallOptions,
}

#[derive(Debug, Default)]
struct Vault(HashMap<String, String>);

impl Resolver for Vault {
    fn resolve<'a>(&'a self, reference: &'a str, consumer: &'a Consumer) -> Resolving<'a> {
        // A value of its own for each tenant that asks for one.
        let found = self.0.get(reference).map(|value| value.replace("TENANT", &consumer.tenant));
        Box::pin(async move {
            found.map(SecretString::from).ok_or_else(|| ResolveError::Unreadable {
                reference: reference.into(),
                reason: "nobody has it".into(),
            })
        })
    }
}

impl Guest {
    /// Configured like this by this schema; `env:NAME` has the value given for `NAME`.
    pub fn configured(mut self, schema: &Value, config: &Value, values: &[(&str, &str)]) -> Guest {
        let fields = fields(schema).expect("a schema");
        self.config = Stored::all(config, &fields).expect("references").to_string();
        let values = values.iter().map(|(name, value)| (format!("env:{name}"), (*value).to_owned()));
        self.secrets = Arc::new(Vault(values.collect()));
        self
    }

    /// With one secret in `key`, of which the schema says this.
    pub fn with_secret(self, value: &str, said: Value) -> Guest {
        let mut field = json!({"format": "secret-ref"});
        if !said.is_null() {
            field["x-leasehold-secret"] = said;
        }
        let schema = json!({"properties": {"key": field}});
        self.configured(&schema, &json!({"key": "env:KEY"}), &[("KEY", value)])
    }

    /// With what a declaration asks for.
    pub fn declared(mut self, asks: &[&str]) -> Guest {
        let asks = asks.iter().map(|text| text.parse().expect("an ask")).collect();
        self.policy = Arc::new(Policy::new("reach", Some(asks), self.policy.granted().to_vec()));
        self
    }

    /// Called for this tenant.
    pub fn of_tenant(mut self, tenant: &str) -> Guest {
        self.tenant = tenant.into();
        self
    }

    /// With these limits.
    pub fn limited(mut self, changes: &[(Limit, u64)]) -> Guest {
        self.options.limits = limits(changes);
        self
    }

    /// Runs a command; what it wrote.
    pub async fn run(&self, argv: &[&str]) -> String {
        let (output, finished, _) = self.ran(argv).await;
        finished.unwrap_or_else(|error| panic!("{argv:?}: {error}"));
        output
    }

    /// Runs a command; what it wrote, how it ended, and what it cost.
    pub async fn ran(&self, argv: &[&str]) -> (String, Result<(), CallError>, Bill) {
        let (output, error) = (Output::new(&self.options.limits), Output::new(&self.options.limits));
        let finished = self.call(command(argv, &output, &error)).await;
        (output.text(), finished.answer.map(drop), finished.bill)
    }

    /// Calls a method.
    pub async fn call<H: Hook>(&self, hook: H) -> Finished<H::Answer> {
        let services =
            Services { resolver: self.secrets.clone(), state: self.state.clone(), audit: self.audit.clone() };
        let consumer = Consumer {
            tenant: self.tenant.clone(),
            environment: "environment".into(),
            run: None,
            purpose: Purpose::Use,
        };
        let opened = Reach::open(self.policy.clone(), services, &self.config, &consumer).await;
        let (config, reach) = opened.expect("the secrets are there");
        let context = Context { tenant: self.tenant.clone(), ..context(&config) };
        let options = CallOptions { authority: Some(reach), ..self.options.clone() };
        self.provider.call(hook, context, &options).await
    }

    /// What was written down.
    pub fn audit(&self) -> Vec<Entry> {
        self.audit.entries()
    }
}

/// A server on loopback that answers whatever it is told to.
pub struct Server {
    address: SocketAddr,
    requests: Arc<Mutex<Vec<String>>>,
    connections: Arc<AtomicUsize>,
    open: Arc<AtomicUsize>,
}

impl Server {
    /// Answers every request, given as head and body, with these bytes; keeps connections open.
    pub async fn answering(answer: impl Fn(&str) -> Vec<u8> + Clone + Send + Sync + 'static) -> Server {
        Server::at("127.0.0.1:0", answer).await
    }

    /// The same at an address.
    pub async fn at(
        address: &str,
        answer: impl Fn(&str) -> Vec<u8> + Clone + Send + Sync + 'static,
    ) -> Server {
        let requests: Arc<Mutex<Vec<String>>> = Arc::default();
        let seen = requests.clone();
        let mut server = Server::raw(address, move |mut stream| {
            let (answer, seen) = (answer.clone(), seen.clone());
            async move {
                while let Some(request) = heard(&mut stream).await {
                    let bytes = answer(&request);
                    seen.lock().unwrap_or_else(PoisonError::into_inner).push(request);
                    if stream.write_all(&bytes).await.is_err() {
                        return;
                    }
                }
            }
        })
        .await;
        server.requests = requests;
        server
    }

    /// Hands every connection to this.
    pub async fn raw<F>(
        address: &str,
        serve: impl Fn(TcpStream) -> F + Clone + Send + Sync + 'static,
    ) -> Server
    where
        F: Future<Output = ()> + Send,
    {
        let listener = TcpListener::bind(address).await.expect("a port is free");
        let address = listener.local_addr().expect("it listens");
        let (connections, open) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
        let (counted, alive) = (connections.clone(), open.clone());
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                counted.fetch_add(1, Ordering::SeqCst);
                alive.fetch_add(1, Ordering::SeqCst);
                let (serve, alive) = (serve.clone(), alive.clone());
                tokio::spawn(async move {
                    serve(stream).await;
                    alive.fetch_sub(1, Ordering::SeqCst);
                });
            }
        });
        Server { address, requests: Arc::default(), connections, open }
    }

    /// Its port.
    pub fn port(&self) -> u16 {
        self.address.port()
    }

    /// A URL of it by its address.
    pub fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    /// The grant of it by its address.
    pub fn grant(&self) -> String {
        format!("http=http://{}", self.address)
    }

    /// Everything it was asked, head and body.
    pub fn requests(&self) -> Vec<String> {
        self.requests.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Connections it ever had.
    pub fn connections(&self) -> usize {
        self.connections.load(Ordering::SeqCst)
    }

    /// Waits until nobody is connected any more.
    pub async fn left_alone(&self) {
        while self.open.load(Ordering::SeqCst) > 0 {
            tokio::task::yield_now().await;
        }
    }
}

/// An answer with this body.
pub fn ok(body: &str) -> Vec<u8> {
    with_head("", body.as_bytes())
}

/// An answer with these further header lines and this body.
pub fn with_head(lines: &str, body: &[u8]) -> Vec<u8> {
    let mut answer = format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\n{lines}\r\n", body.len()).into_bytes();
    answer.extend_from_slice(body);
    answer
}

/// One request as it came, chunks joined; none when the other side has gone.
pub async fn heard<S: tokio::io::AsyncRead + Unpin>(stream: &mut S) -> Option<String> {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        head.push(stream.read_u8().await.ok()?);
    }
    let head = String::from_utf8_lossy(&head).into_owned();
    let lower = head.to_ascii_lowercase();
    let mut body = Vec::new();
    if let Some(length) = lower.lines().find_map(|line| line.strip_prefix("content-length: ")) {
        body.resize(length.parse().ok()?, 0);
        stream.read_exact(&mut body).await.ok()?;
    } else if lower.contains("transfer-encoding: chunked") {
        loop {
            let size = usize::from_str_radix(line(stream).await?.trim(), 16).ok()?;
            if size == 0 {
                // Trailers, up to the empty line.
                loop {
                    let trailer = line(stream).await?;
                    if trailer.trim().is_empty() {
                        break;
                    }
                    body.extend_from_slice(format!("\ntrailer {trailer}").as_bytes());
                }
                break;
            }
            let begin = body.len();
            body.resize(begin + size, 0);
            stream.read_exact(&mut body[begin..]).await.ok()?;
            line(stream).await?;
        }
    }
    Some(format!("{head}{}", String::from_utf8_lossy(&body)))
}

async fn line<S: tokio::io::AsyncRead + Unpin>(stream: &mut S) -> Option<String> {
    let mut line = Vec::new();
    while !line.ends_with(b"\n") {
        line.push(stream.read_u8().await.ok()?);
    }
    Some(String::from_utf8_lossy(&line).into_owned())
}
