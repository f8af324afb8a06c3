//! A place with the provider installed and an engine granted to it.

use crate::common::Place;
use crate::common::sandbox::{leasehold, outcome, place, ran};
use leasehold_tests::engines::{self, Engine, IMAGE, Kind};
use std::path::PathBuf;
use std::process::Command;

/// A place whose leases are containers of one engine.
pub(crate) struct Shop<'a> {
    pub(crate) place: Place,
    pub(crate) engine: &'a Engine,
    /// The environment of its leases, which no other test's have.
    pub(crate) environment: String,
}

/// Runs a test with the engine that tests share.
pub(crate) fn with(kind: Kind, test: fn(&Shop<'_>)) {
    engines::with(kind, Engine::shared, |engine| {
        let shop = Shop::open(engine);
        test(&shop);
        shop.empty();
    });
}

impl<'a> Shop<'a> {
    pub(crate) fn open(engine: &'a Engine) -> Shop<'a> {
        static NUMBER: std::sync::atomic::AtomicU32 = std::sync::atomic::AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, std::sync::atomic::Ordering::SeqCst);
        let shop = Shop { place: place(), engine, environment: format!("box-{number}") };
        shop.configured("");
        let component = leasehold_builder::guests_dir().join("docker.wasm");
        let declaration = leasehold_builder::layout::workspace_root().join("guests/docker/provider.json");
        let granted = format!("unix-http=docker={}", engine.socket().display());
        let arguments = ["provider", "install", component.to_str().unwrap(), "--declaration"];
        let more = [declaration.to_str().unwrap(), "--grant", "time", "--grant", &granted];
        assert_eq!(
            ran(&shop.place, &[&arguments[..], &more[..]].concat()),
            (0, String::new(), String::new())
        );
        shop
    }

    /// Writes the environment, with more of a configuration, such as `, memoryBytes = 1`.
    pub(crate) fn configured(&self, more: &str) {
        let name = &self.environment;
        let text = format!(
            "[environments.{name}]\nprovider = \"docker\"\nconfig = {{ image = \"{IMAGE}\"{more} }}\n"
        );
        std::fs::write(self.place.path().join("leasehold.toml"), text).unwrap();
    }

    fn settings(&self) -> PathBuf {
        self.place.path().join("leasehold.toml")
    }

    /// The binary, ready to run.
    pub(crate) fn command(&self, arguments: &[&str]) -> Command {
        let mut command = leasehold(&self.place, arguments);
        command.env("LEASEHOLD_TEST", "1");
        command
    }

    /// Runs `leasehold run` without a folder.
    pub(crate) fn run(&self, options: &[&str], command: &[&str]) -> (i32, String, String) {
        let settings = self.settings();
        let first = ["run", "--settings", settings.to_str().unwrap(), "--environment", &self.environment];
        ran(&self.place, &[&first[..], &["--no-sync"], options, &["--"], command].concat())
    }

    /// Any other verb, such as `lease ls`.
    pub(crate) fn tell(&self, arguments: &[&str]) -> (i32, String, String) {
        outcome(&mut self.told(arguments))
    }

    /// The same, ready to run. The settings go behind the first two words, where every verb takes them.
    pub(crate) fn told(&self, arguments: &[&str]) -> Command {
        let settings = self.settings();
        let settings = ["--settings", settings.to_str().unwrap()];
        let words = if matches!(arguments[0], "run" | "cp" | "reconcile") { 1 } else { 2 };
        self.command(&[&arguments[..words], &settings, &arguments[words..]].concat())
    }

    /// A lease by hand; its id.
    pub(crate) fn acquired(&self) -> String {
        let (code, id, said) = self.tell(&["lease", "acquire", "--environment", &self.environment]);
        assert_eq!(code, 0, "{said}");
        id.trim().to_owned()
    }

    /// A command in a lease.
    pub(crate) fn exec(&self, lease: &str, command: &[&str]) -> (i32, String, String) {
        self.tell(&[&["lease", "exec", lease, "--"], command].concat())
    }

    pub(crate) fn released(&self, lease: &str) {
        let (code, _, said) = self.tell(&["lease", "release", lease]);
        assert_eq!(code, 0, "{said}");
    }

    /// Ids of the containers of this place, as the engine itself lists them.
    pub(crate) fn containers(&self) -> Vec<String> {
        self.engine.containers(&self.environment)
    }

    /// Nothing is left: by the engine's own list, and by the store's.
    pub(crate) fn empty(&self) {
        assert_eq!(self.containers(), Vec::<String>::new(), "a container is left");
        assert_eq!(self.tell(&["reconcile"]), (0, String::new(), String::new()), "a lease is left");
    }
}
