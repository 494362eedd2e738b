//! Starting and stopping a gateway: every step that can fail before the first request, in order, each with one clear
//! line; then Pingora's server; then the ledger's last commit.

mod accounts;
mod housekeeping;
mod load;
mod reload;

use crate::access_log::AccessLog;
use crate::admin::AdminApp;
use crate::backend::Pools;
use crate::config::{Config, ListenAddr, LogTarget, OnUnknown};
use crate::exchange::Services;
use crate::ledger::Ledger;
use crate::metrics::Metrics;
use crate::ops::{
    DataDir, HangUp, Listening, LogFile, LoopLag, PidFile, Ready, Reloading, Signals, Socket,
    install_error_log, raise_fd_limit, start_through_signals,
};
use crate::proxy::{Entry, Gateway, Hub, Rules};
use crate::tenant::{Directory, Holdings};
use accounts::Accounts;
use housekeeping::Housekeeping;
use load::Load;
use pingora_core::apps::{HttpServerOptions, http_app::HttpServer};
use pingora_core::server::configuration::ServerConf;
use pingora_core::server::{RunArgs, Server};
use pingora_core::services::background::background_service;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::sync::watch;

/// How long requests that the runtime dropped may take to settle before the ledger closes.
const SETTLE_WAIT: Duration = Duration::from_secs(1);

/// Runs a gateway until a signal ends it; `ready` is called once it serves and can be told to stop. The error is one
/// line: what, where, and what to do.
pub fn run(config: Config, hang_up: HangUp, ready: Ready) -> Result<(), String> {
    if hang_up == HangUp::Reload {
        start_through_signals();
    }
    let error_log = open_log("log.error", &config.log.error)?;
    let access_file = open_log("log.access", &config.log.access)?;
    // a second gateway in one process (there is none but in tests) logs where the first does
    if install_error_log(error_log.clone(), config.log.level).is_err() {
        log::debug!("the log is installed already");
    }
    for line in &config.not_in_effect {
        log::warn!("{line}");
    }
    raise_fd_limit();
    let _data_dir = DataDir::lock(&config.server.data_dir)?;
    let pid_file = PidFile::write(&config.server.pid_file)?;
    let sockets = Sockets::bind(&config)?;
    let hub = build_hub(
        &config,
        AccessLog::new(access_file.clone(), config.log.format),
    )?;
    let closed = watch::Sender::new(false);
    let serving = format!(
        "streamgate {} serves on {}",
        env!("CARGO_PKG_VERSION"),
        sockets.addresses()
    );
    let ready = Box::new(move || {
        log::info!("{serving}");
        ready();
    });
    let reload = Arc::new(reload::Reload::new(hub.clone()));
    let server = assemble(&config, &hub, sockets, &closed, reload.clone());
    server.run(RunArgs {
        shutdown_signal: Box::new(Signals {
            drain: hub.drain.clone(),
            drain_timeout: config.server.drain_timeout,
            registry: hub.registry.clone(),
            closed,
            logs: vec![error_log, access_file],
            ready: Mutex::new(Some(ready)),
            reload,
            hang_up,
        }),
    });
    let finished = finish(&hub);
    drop(pid_file);
    finished
}

fn open_log(key: &str, target: &LogTarget) -> Result<LogFile, String> {
    LogFile::open(target).map_err(|e| {
        let path = match target {
            LogTarget::File(path) => path.display().to_string(),
            LogTarget::Stdout | LogTarget::Stderr | LogTarget::Off => String::new(),
        };
        format!("{key} {path} cannot be opened: {e}; give it a file this user may write to")
    })
}

/// The sockets of a gateway, bound before anything else is started.
struct Sockets {
    public: Vec<(Socket, bool)>,
    admin: Option<Socket>,
}

impl Sockets {
    fn addresses(&self) -> String {
        let public = self.public.iter().map(|(s, _)| s.addr().to_owned());
        let admin = self.admin.iter().map(|s| format!("{} (admin)", s.addr()));
        public.chain(admin).collect::<Vec<_>>().join(", ")
    }

    fn bind(config: &Config) -> Result<Sockets, String> {
        let buffer = Some(config.server.socket_buffer);
        let mut public = Vec::new();
        for listen in &config.listen {
            match &listen.addr {
                ListenAddr::Tcp(addr) if listen.tls.is_empty() => {
                    public.push((Socket::bind("listen.addr", addr, buffer)?, listen.h2c));
                }
                // what was meant to be encrypted or local is not served in the clear or to everyone instead
                addr @ (ListenAddr::Tcp(_) | ListenAddr::Unix(_)) => {
                    log::warn!("listen.addr {addr} is not served: this build cannot yet")
                }
            }
        }
        if public.is_empty() {
            return Err("no listener of the config can be served by this build yet".to_owned());
        }
        let admin = config
            .admin
            .as_ref()
            .map(|a| Socket::bind("admin.addr", &a.addr, None))
            .transpose()?;
        Ok(Sockets { public, admin })
    }
}

/// Everything the requests share, with the ledger open and its recovered sums on the accounts.
fn build_hub(config: &Config, access_log: AccessLog) -> Result<Arc<Hub>, String> {
    let metrics = Arc::new(Metrics::new().map_err(|e| format!("metrics: {e}"))?);
    let holdings = Arc::new(Holdings::default());
    let accounts = Accounts::new(holdings.clone(), metrics.clone());
    let (ledger, recovered) =
        Ledger::start(&config.ledger, Box::new(accounts)).map_err(|e| e.to_string())?;
    accounts::recover(&holdings, &metrics, &recovered);
    let rules = boot_runtime()?.block_on(rules(config.clone(), &holdings, &metrics, None));
    let services = Arc::new(Services {
        ledger,
        metrics,
        access_log,
        checkpoints: AtomicBool::new(config.ledger.on_unknown == OnUnknown::ChargeCounted),
    });
    Ok(Arc::new(Hub::new(rules, services, holdings)))
}

/// What a configuration turns into, with what survives of the rules `before`. Look-ups come first: from the first bound
/// that is put in force to the last, nothing is waited for.
async fn rules(
    config: Config,
    holdings: &Holdings,
    metrics: &Metrics,
    before: Option<&Rules>,
) -> Rules {
    let pools = Pools::start(&config, before.map(|b| &b.pools), metrics).await;
    pools.put_in_force();
    let tenants = Arc::new(Directory::new(&config.tenants, holdings));
    for pool in pools.all() {
        metrics.add_pool(&pool.rules.name);
    }
    Rules {
        config,
        tenants,
        pools,
    }
}

/// A runtime for the look-ups before the server's own exist.
fn boot_runtime() -> Result<tokio::runtime::Runtime, String> {
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|e| format!("no runtime: {e}"))
}

fn server_conf(config: &Config) -> ServerConf {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    ServerConf {
        threads: match config.server.threads {
            0 => cores,
            n => n,
        },
        // `Signals` has waited for all that is to be waited for
        grace_period_seconds: Some(0),
        graceful_shutdown_timeout_seconds: Some(0),
        ..ServerConf::default()
    }
}

fn assemble(
    config: &Config,
    hub: &Arc<Hub>,
    sockets: Sockets,
    closed: &watch::Sender<bool>,
    reload: Arc<dyn Reloading>,
) -> Server {
    let mut server = Server::new_with_opt_and_conf(None, server_conf(config));
    server.bootstrap();
    let mut load = Load::new(hub.clone());
    let lag = LoopLag::new(hub.services.metrics.clone(), move |late| load.note(late));
    let mut public = Listening::new("public", None, Some(closed.subscribe())).measure(lag);
    for (socket, h2c) in sockets.public {
        public.serve(entry(&server, hub, h2c), socket);
    }
    server.add_service(public);
    if let Some(socket) = sockets.admin {
        // the admin listener stays open until the end: it tells that the process is draining
        let mut admin = Listening::new("admin", Some(1), None);
        admin.serve(
            HttpServer::new_app(AdminApp::new(hub.clone(), reload)),
            socket,
        );
        server.add_service(admin);
    }
    let mut housekeeping = background_service("housekeeping", Housekeeping::new(hub.clone()));
    housekeeping.threads = Some(1);
    server.add_service(housekeeping);
    server
}

fn entry(server: &Server, hub: &Arc<Hub>, h2c: bool) -> Entry {
    let gateway = Gateway::new(hub.clone(), &server.configuration);
    let mut app = pingora_proxy::http_proxy(&server.configuration, gateway);
    let mut options = HttpServerOptions::default();
    let timeouts = hub.rules().config.server.timeouts.clone();
    options.h2c = h2c;
    options.h2_idle_timeout = Some(timeouts.keepalive);
    // our own hook refuses it, in the shape of every other refusal
    options.allow_connect_method_proxying = true;
    app.server_options = Some(options);
    Entry::new(app, h2c, timeouts)
}

/// What the runtime dropped settles in its own drop; then the ledger writes what it was sent, and closes. Or says that not
/// all could be written.
fn finish(hub: &Hub) -> Result<(), String> {
    let deadline = crate::clock::instant() + SETTLE_WAIT;
    while !hub.registry.is_empty() && crate::clock::instant() < deadline {
        std::thread::sleep(Duration::from_millis(5));
    }
    if !hub.registry.is_empty() {
        log::warn!(
            "{} requests were cut off; the next start finds them as crashed",
            hub.registry.len()
        );
    }
    let closed = hub.services.ledger.clone().close();
    log::info!("stopped");
    closed
}
