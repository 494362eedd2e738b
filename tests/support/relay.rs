//! A wire between two programs that a test can cut and mend.

use std::io::copy;
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;

/// Passes connections on as long as it is kept and whole.
pub struct Relay {
    addr: String,
    shared: Arc<Shared>,
}

struct Shared {
    to: String,
    is_cut: AtomicBool,
    is_over: AtomicBool,
    ends: Mutex<Vec<TcpStream>>,
}

impl Relay {
    #[track_caller]
    pub fn to(addr: &str) -> Relay {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port for the relay");
        let addr_of_relay = listener.local_addr().expect("the relay's address");
        let shared = Arc::new(Shared {
            to: addr.to_owned(),
            is_cut: AtomicBool::new(false),
            is_over: AtomicBool::new(false),
            ends: Mutex::default(),
        });
        let accepting = shared.clone();
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                if accepting.is_over.load(Ordering::SeqCst) {
                    return;
                }
                accepting.connect(stream);
            }
        });
        Relay {
            addr: addr_of_relay.to_string(),
            shared,
        }
    }

    pub fn addr(&self) -> &str {
        &self.addr
    }

    /// Ends every connection, and takes no new one.
    pub fn cut(&self) {
        self.shared.is_cut.store(true, Ordering::SeqCst);
        for end in self.shared.ends.lock().unwrap().drain(..) {
            end.shutdown(Shutdown::Both).ok();
        }
    }

    pub fn mend(&self) {
        self.shared.is_cut.store(false, Ordering::SeqCst);
    }
}

impl Shared {
    /// A connection that cannot be passed on is closed.
    fn connect(&self, near: TcpStream) {
        if self.is_cut.load(Ordering::SeqCst) {
            return;
        }
        let Ok(far) = TcpStream::connect(&self.to) else {
            return;
        };
        pass(&near, &far);
        pass(&far, &near);
        self.ends.lock().unwrap().extend([near, far]);
    }
}

/// Copies what comes from the one to the other, to its end.
fn pass(from: &TcpStream, to: &TcpStream) {
    let (Ok(mut from), Ok(mut to)) = (from.try_clone(), to.try_clone()) else {
        return;
    };
    from.set_nodelay(true).ok();
    to.set_nodelay(true).ok();
    thread::spawn(move || {
        copy(&mut from, &mut to).ok();
        to.shutdown(Shutdown::Both).ok();
        from.shutdown(Shutdown::Both).ok();
    });
}

impl Drop for Relay {
    fn drop(&mut self) {
        self.shared.is_over.store(true, Ordering::SeqCst);
        self.cut();
        // so that the listener looks up
        TcpStream::connect(&self.addr).ok();
    }
}
