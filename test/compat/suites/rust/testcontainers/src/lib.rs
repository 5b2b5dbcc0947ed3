//! Stands in the place of testcontainers, as far as the tests of zookeeper-client use it: a container is a
//! process of the zkServer.sh in the directory that the variable SUITES_BIN names.

use std::fs;
use std::io::{Read, Write};
use std::marker::PhantomData;
use std::net::{TcpListener, TcpStream};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::Mutex;
use std::thread::sleep;
use std::time::{Duration, Instant};

const PATIENCE: Duration = Duration::from_secs(60);
const INTERVAL: Duration = Duration::from_millis(50);

pub mod clients {
    use super::*;

    #[derive(Default)]
    pub struct Cli;

    impl Cli {
        /// Starts a server and returns when it serves.
        pub fn run(&self, image: core::RunnableImage<images::generic::GenericImage>) -> core::Container<'_, images::generic::GenericImage> {
            let container = core::Container::new(image);
            container.start();
            container
        }
    }
}

pub mod images {
    pub mod generic {
        use crate::core::{Healthcheck, RunnableImage, WaitFor};

        #[derive(Default)]
        pub struct GenericImage {
            env: Vec<(String, String)>,
        }

        impl GenericImage {
            pub fn new(_name: &str, _tag: &str) -> Self {
                Self::default()
            }

            pub fn with_env_var(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
                self.env.push((name.into(), value.into()));
                self
            }

            pub fn with_healthcheck(self, _check: Healthcheck) -> Self {
                self
            }

            pub fn with_wait_for(self, _what: WaitFor) -> Self {
                self
            }
        }

        impl From<GenericImage> for RunnableImage<GenericImage> {
            fn from(image: GenericImage) -> Self {
                Self { env: image.env, ..Default::default() }
            }
        }
    }
}

pub mod core {
    use super::*;

    pub enum WaitFor {
        Healthcheck,
    }

    #[derive(Default)]
    pub struct Healthcheck;

    impl Healthcheck {
        pub fn with_cmd<I>(self, _command: I) -> Self {
            self
        }

        pub fn with_interval(self, _interval: Duration) -> Self {
            self
        }

        pub fn with_retries(self, _retries: u32) -> Self {
            self
        }
    }

    pub struct RunnableImage<I> {
        pub(crate) env: Vec<(String, String)>,
        pub(crate) volumes: Vec<(String, String)>,
        pub(crate) host: bool,
        pub(crate) image: PhantomData<I>,
    }

    impl<I> Default for RunnableImage<I> {
        fn default() -> Self {
            Self { env: vec![], volumes: vec![], host: false, image: PhantomData }
        }
    }

    impl<I> RunnableImage<I> {
        pub fn with_volume(mut self, volume: (impl Into<String>, impl Into<String>)) -> Self {
            self.volumes.push((volume.0.into(), volume.1.into()));
            self
        }

        pub fn with_network(mut self, network: impl Into<String>) -> Self {
            self.host = network.into() == "host";
            self
        }

        fn volume(&self, inside: &str) -> Option<PathBuf> {
            self.volumes.iter().find(|v| v.1 == inside).map(|v| PathBuf::from(&v.0))
        }
    }

    static CONTAINERS: AtomicU32 = AtomicU32::new(0);

    pub struct Container<'d, I> {
        dir: PathBuf,
        env: Vec<(String, String)>,
        port: u16,
        process: Mutex<Option<Child>>,
        of: PhantomData<(&'d (), I)>,
    }

    impl<I> Container<'_, I> {
        pub(crate) fn new(image: RunnableImage<I>) -> Self {
            let number = CONTAINERS.fetch_add(1, Ordering::Relaxed);
            let dir = std::env::temp_dir().join(format!("suites-{}-{number}", std::process::id()));
            let data = image.volume("/data").unwrap_or_else(|| dir.join("data"));
            fs::create_dir_all(&data).unwrap();
            fs::create_dir_all(&dir).unwrap();
            let mut config = match image.volume("/conf/zoo.cfg") {
                Some(path) => fs::read_to_string(path).unwrap(),
                None => "dataDir=/data\nclientPort=2181\ntickTime=2000\ninitLimit=5\nsyncLimit=2\n".to_string(),
            };
            let port;
            if image.host {
                // The port is in the server's own line: server.ID=...;HOST:PORT.
                let id = fs::read_to_string(data.join("myid")).unwrap();
                let own = format!("server.{}=", id.trim());
                let line = config.lines().find(|l| l.starts_with(&own)).unwrap();
                port = line.rsplit(':').next().unwrap().parse().unwrap();
            } else {
                port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
                config = config.replace("clientPort=2181", &format!("clientPort={port}"));
            }
            config = config.replace("dataDir=/data", &format!("dataDir={}", data.display()));
            config += "admin.enableServer=false\n";
            let mut env = image.env;
            for (outside, inside) in &image.volumes {
                config = config.replace(&format!("={inside}"), &format!("={outside}"));
                for (_, value) in &mut env {
                    *value = value.replace(&format!("={inside}"), &format!("={outside}"));
                }
            }
            fs::write(dir.join("zoo.cfg"), config).unwrap();
            Self { dir, env, port, process: Mutex::new(None), of: PhantomData }
        }

        /// Starts the server, on its data if it ran before, and returns when it serves.

        pub fn start(&self) {
            let mut log = fs::OpenOptions::new().create(true).append(true).open(self.dir.join("log")).unwrap();
            writeln!(log, "starting").unwrap();
            let mut command = Command::new(format!("{}/zkServer.sh", std::env::var("SUITES_BIN").unwrap()));
            command.arg("start-foreground").arg(self.dir.join("zoo.cfg")).current_dir(&self.dir).envs(self.env.clone());
            command.stdout(Stdio::from(log.try_clone().unwrap())).stderr(Stdio::from(log));
            *self.process.lock().unwrap() = Some(command.spawn().unwrap());
            let begun = Instant::now();
            while !self.serves() {
                assert!(begun.elapsed() < PATIENCE, "no server at port {}:\n{}", self.port, self.log());
                sleep(INTERVAL);
            }
        }

        fn serves(&self) -> bool {
            let mut answer = String::new();
            let Ok(mut conn) = TcpStream::connect(("127.0.0.1", self.port)) else { return false };
            conn.set_read_timeout(Some(Duration::from_secs(2))).unwrap(); // a server that starts may not answer
            conn.write_all(b"srvr").is_ok() && conn.read_to_string(&mut answer).is_ok() && answer.contains("Mode: ")
        }

        pub fn stop(&self) {
            if let Some(mut process) = self.process.lock().unwrap().take() {
                let _ = Command::new("kill").arg(process.id().to_string()).status();
                process.wait().unwrap();
            }
        }

        pub fn get_host_port(&self, _inside: u16) -> u16 {
            self.port
        }

        pub fn stdout(&self) -> LogStream {
            LogStream { file: self.dir.join("log") }
        }

        fn log(&self) -> String {
            fs::read_to_string(self.dir.join("log")).unwrap_or_default()
        }
    }

    impl<I> Drop for Container<'_, I> {
        fn drop(&mut self) {
            self.stop();
            let _ = fs::remove_dir_all(&self.dir);
        }
    }

    /// What gozkd logs where ZooKeeper logs the line that a test waits for.
    const OURS: [(&str, &str); 1] = [("Read-only server started", "read-only mode: ")];

    pub struct LogStream {
        file: PathBuf,
    }

    impl LogStream {
        pub fn wait_for_message(self, message: &str) -> Result<(), String> {
            let begun = Instant::now();
            while begun.elapsed() < PATIENCE {
                let log = fs::read_to_string(&self.file).unwrap_or_default();
                if log.contains(message) || OURS.iter().any(|(theirs, ours)| message.contains(theirs) && log.contains(ours)) {
                    return Ok(());
                }
                sleep(INTERVAL);
            }
            Err(format!("the log does not contain {message:?}"))
        }
    }
}
