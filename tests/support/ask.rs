//! Requests as a test writes them, down to the bytes on the wire.

use super::KEY;
use serde_json::{Value, json};

/// One request. Every part has a default; what a test is about it sets.
#[derive(Clone, Debug)]
pub struct Ask {
    method: &'static str,
    path: String,
    key: Option<String>,
    headers: Vec<(String, String)>,
    doc: Option<Value>,
    body: Vec<u8>,
}

/// A streamed chat: model `m`, a prompt of eleven bytes, a cap of 100.
pub fn chat() -> Ask {
    Ask::post("/v1/chat/completions").json(json!({
        "model": "m",
        "messages": [{"role": "user", "content": "hello there"}],
        "max_tokens": 100,
        "stream": true,
    }))
}

/// The same chat, not streamed.
pub fn whole_chat() -> Ask {
    chat().without("stream")
}

impl Ask {
    pub fn get(path: impl Into<String>) -> Ask {
        Ask::new("GET", path.into())
    }

    pub fn post(path: impl Into<String>) -> Ask {
        Ask::new("POST", path.into())
    }

    fn new(method: &'static str, path: String) -> Ask {
        Ask {
            method,
            path,
            key: Some(KEY.to_owned()),
            headers: Vec::new(),
            doc: None,
            body: Vec::new(),
        }
    }

    pub fn key(mut self, key: &str) -> Ask {
        self.key = Some(key.to_owned());
        self
    }

    pub fn no_key(mut self) -> Ask {
        self.key = None;
        self
    }

    pub fn header(mut self, name: &str, value: &str) -> Ask {
        self.headers.push((name.to_owned(), value.to_owned()));
        self
    }

    /// The request's id.
    pub fn id(self, id: &str) -> Ask {
        self.header("Idempotency-Key", id)
    }

    /// A fault for the simulator.
    pub fn fault(self, fault: &str) -> Ask {
        self.header("X-Sim", fault)
    }

    pub fn json(mut self, doc: Value) -> Ask {
        self.doc = Some(doc);
        self
    }

    /// Sets a member of the JSON body.
    pub fn set(mut self, member: &str, value: impl Into<Value>) -> Ask {
        let doc = self.doc.get_or_insert_with(|| json!({}));
        doc[member] = value.into();
        self
    }

    /// Removes a member of the JSON body.
    pub fn without(mut self, member: &str) -> Ask {
        if let Some(Value::Object(members)) = &mut self.doc {
            members.remove(member);
        }
        self
    }

    /// A body byte for byte, in place of a JSON document.
    pub fn body(mut self, bytes: impl Into<Vec<u8>>) -> Ask {
        self.doc = None;
        self.body = bytes.into();
        self
    }

    pub fn document(&self) -> &Value {
        self.doc.as_ref().unwrap_or(&Value::Null)
    }

    /// The request as it goes on the wire.
    pub fn bytes(&self) -> Vec<u8> {
        let body = self.body_bytes();
        let mut out = self.head_for(body.len()).into_bytes();
        out.extend_from_slice(&body);
        out
    }

    /// The request's head and body for an HTTP/2 client.
    pub fn http2(&self) -> (http::Request<()>, Vec<u8>) {
        let body = self.body_bytes();
        let mut request = http::Request::builder()
            .method(self.method)
            .uri(format!("http://localhost{}", self.path));
        if !body.is_empty() {
            request = request.header("content-type", "application/json");
        }
        if let Some(key) = &self.key {
            request = request.header("authorization", format!("Bearer {key}"));
        }
        for (name, value) in &self.headers {
            request = request.header(name.to_ascii_lowercase(), value);
        }
        (request.body(()).expect("a request's head"), body)
    }

    fn body_bytes(&self) -> Vec<u8> {
        self.doc
            .as_ref()
            .map_or_else(|| self.body.clone(), |doc| doc.to_string().into_bytes())
    }

    /// The head alone, announcing a body of that length.
    pub fn head_for(&self, length: usize) -> String {
        let mut head = format!(
            "{} {} HTTP/1.1\r\nHost: localhost\r\n",
            self.method, self.path
        );
        if self.method != "GET" || length > 0 {
            head += &format!("Content-Type: application/json\r\nContent-Length: {length}\r\n");
        }
        if let Some(key) = &self.key {
            head += &format!("Authorization: Bearer {key}\r\n");
        }
        for (name, value) in &self.headers {
            head += &format!("{name}: {value}\r\n");
        }
        head + "\r\n"
    }
}
