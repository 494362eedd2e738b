//! The config of a test's gateway: one pool `p` with the model `m`, the tenants `acme` and `other`, and what a test adds.

use super::gateway::Gateway;
use super::scratch::Scratch;
use super::{KEY, OTHER_KEY, ports, sha256};

/// What a test wants otherwise than usual, as lines of TOML by section. Nothing is limited unless it says so.
#[derive(Default)]
pub struct Builder {
    /// None: one, which is enough for a test.
    threads: Option<usize>,
    backends: Vec<String>,
    server: String,
    listen: String,
    tenant: String,
    other: String,
    pool: String,
    log: String,
    admin: String,
    extra: String,
    files: Vec<(String, String)>,
}

impl Builder {
    /// A backend of the pool `p`, by its address.
    pub fn backend(mut self, addr: &str) -> Builder {
        self.backends.push(addr.to_owned());
        self
    }

    /// Worker threads; 0: one per core.
    pub fn threads(mut self, count: usize) -> Builder {
        self.threads = Some(count);
        self
    }

    /// Lines of `[server]`.
    pub fn server(mut self, lines: &str) -> Builder {
        append(&mut self.server, lines);
        self
    }

    /// Lines of the one `[[listen]]`.
    pub fn listen(mut self, lines: &str) -> Builder {
        append(&mut self.listen, lines);
        self
    }

    /// Lines of the tenant `acme`.
    pub fn tenant(mut self, lines: &str) -> Builder {
        append(&mut self.tenant, lines);
        self
    }

    /// Lines of the tenant `other`.
    pub fn other(mut self, lines: &str) -> Builder {
        append(&mut self.other, lines);
        self
    }

    /// Lines of the pool `p`.
    pub fn pool(mut self, lines: &str) -> Builder {
        append(&mut self.pool, lines);
        self
    }

    /// Lines of `[log]`.
    pub fn log(mut self, lines: &str) -> Builder {
        append(&mut self.log, lines);
        self
    }

    /// Lines of `[admin]`.
    pub fn admin(mut self, lines: &str) -> Builder {
        append(&mut self.admin, lines);
        self
    }

    /// Whole sections, after all others.
    pub fn extra(mut self, sections: &str) -> Builder {
        append(&mut self.extra, sections);
        self
    }

    /// A file beside the config.
    pub fn file(mut self, name: &str, content: &str) -> Builder {
        self.files.push((name.to_owned(), content.to_owned()));
        self
    }

    /// Starts the gateway and waits until it is ready.
    #[track_caller]
    pub fn start(self) -> Gateway {
        Gateway::start(self)
    }

    /// Writes the config and starts nothing.
    pub fn write(&self) -> Written {
        let scratch = Scratch::new();
        std::fs::create_dir_all(scratch.join("data")).expect("the data folder");
        for (name, content) in &self.files {
            scratch.write(name, content);
        }
        let mut written = Written {
            scratch,
            public: String::new(),
            admin: String::new(),
        };
        self.rewrite(&mut written);
        written
    }

    /// Writes the config again, with ports that are free now.
    pub fn rewrite(&self, written: &mut Written) {
        written.public = ports::free_addr();
        written.admin = ports::free_addr();
        written.scratch.write(FILE, self.text(written));
    }

    fn text(&self, written: &Written) -> String {
        let Builder {
            server,
            listen,
            admin,
            tenant,
            other,
            pool,
            log,
            extra,
            ..
        } = self;
        let Written {
            public,
            admin: admin_addr,
            scratch,
        } = written;
        let threads = self.threads.unwrap_or(1);
        let folder = scratch.path().display();
        let (acme, others) = (sha256(KEY), sha256(OTHER_KEY));
        let backends: Vec<String> = self
            .backends
            .iter()
            .map(|addr| format!("{{ addr = \"{addr}\" }}"))
            .collect();
        let backends = backends.join(", ");
        format!(
            r#"[server]
threads = {threads}
data_dir = "{folder}/data"
pid_file = "{folder}/streamgate.pid"
upgrade_sock = "{folder}/upgrade.sock"
{server}
[[listen]]
addr = "{public}"
{listen}
[admin]
addr = "{admin_addr}"
{admin}
[log]
access = "{folder}/access.log"
{log}
[[tenant]]
name = "acme"
keys = [{{ sha256 = "{acme}" }}]
{tenant}
[[tenant]]
name = "other"
keys = [{{ sha256 = "{others}" }}]
{other}
[[pool]]
name = "p"
models = ["m"]
backends = [{backends}]
{pool}
{extra}
"#
        )
    }
}

const FILE: &str = "streamgate.toml";

/// A config on disk, with the addresses it names.
pub struct Written {
    pub scratch: Scratch,
    pub public: String,
    pub admin: String,
}

impl Written {
    /// The file's path, as an argument.
    pub fn file(&self) -> String {
        self.scratch.join(FILE).display().to_string()
    }

    pub fn text(&self) -> String {
        self.scratch.read(FILE)
    }

    /// Replaces a piece of the config; fails where it is not there.
    #[track_caller]
    pub fn replace(&self, from: &str, to: &str) {
        let text = self.text();
        assert!(text.contains(from), "the config has no {from:?}");
        self.scratch.write(FILE, text.replace(from, to));
    }
}

fn append(section: &mut String, lines: &str) {
    section.push_str(lines);
    section.push('\n');
}
