"""A scripted engine that speaks every API, and a gateway before it. Standard library only.

A request's header `X-Script` names what it is answered with; `X-Break` how a stream breaks off after its output.
"""

import json
import socket
import struct
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import ground as grounds

ARGUMENTS = '{"city": "北京", "unit": "°C"}'


def event(data, name=None):
    text = data if isinstance(data, str) else json.dumps(data, ensure_ascii=False)
    return (f"event: {name}\n" if name else "") + f"data: {text}\n\n"


def named(data):
    return event(data, data["type"])


def chunk(delta, finish=None, **more):
    choice = {"index": 0, "delta": delta, "finish_reason": finish}
    return {"id": "c1", "object": "chat.completion.chunk", "created": 1, "model": "scripted", "choices": [choice], **more}


CHAT_USAGE = {"prompt_tokens": 9, "completion_tokens": 4, "total_tokens": 13}
CALL = {"id": "call_1", "type": "function", "function": {"name": "weather", "arguments": ""}}


def chat_stream(script, ask):
    yield event(chunk({"role": "assistant", "content": ""}))
    if script == "tools":
        yield event(chunk({"tool_calls": [{"index": 0, **CALL}]}))
        for piece in (ARGUMENTS[:9], ARGUMENTS[9:]):
            yield event(chunk({"tool_calls": [{"index": 0, "function": {"arguments": piece}}]}))
    else:
        for text in ("Hello", " 北京 😀"):
            yield event(chunk({"content": text}))
    yield "BREAK"
    yield event(chunk({}, "tool_calls" if script == "tools" else "stop"))
    if (ask.get("stream_options") or {}).get("include_usage"):
        yield event({**chunk({}), "choices": [], "usage": CHAT_USAGE})
    yield event("[DONE]")


def chat_whole(script, ask):
    message = {"role": "assistant", "content": "Hello 北京 😀"}
    if script == "tools":
        call = {**CALL, "function": {"name": "weather", "arguments": ARGUMENTS}}
        message = {"role": "assistant", "content": None, "tool_calls": [call]}
    choice = {"index": 0, "message": message, "finish_reason": "tool_calls" if script == "tools" else "stop"}
    return {"id": "c1", "object": "chat.completion", "created": 1, "model": "scripted", "choices": [choice], "usage": CHAT_USAGE}


def completion(text, finish=None, **more):
    choice = {"index": 0, "text": text, "logprobs": None, "finish_reason": finish}
    return {"id": "t1", "object": "text_completion", "created": 1, "model": "scripted", "choices": [choice], **more}


def completions_stream(script, ask):
    for text in ("Hello", " 北京 😀"):
        yield event(completion(text))
    yield "BREAK"
    yield event(completion("", "stop"))
    yield event("[DONE]")


def completions_whole(script, ask):
    return completion("Hello 北京 😀", "stop", usage=CHAT_USAGE)


def response(status, output, **more):
    usage = {
        "input_tokens": 9,
        "input_tokens_details": {"cached_tokens": 0},
        "output_tokens": 4,
        "output_tokens_details": {"reasoning_tokens": 0},
        "total_tokens": 13,
    }
    return {
        "id": "r1", "object": "response", "created_at": 1, "status": status, "model": "scripted", "output": output,
        "parallel_tool_calls": True, "tool_choice": "auto", "tools": [], "error": None, "incomplete_details": None,
        "instructions": None, "metadata": {}, "temperature": 1.0, "top_p": 1.0,
        "usage": usage if status == "completed" else None, **more,
    }


def output_item(script, full):
    if script == "tools":
        return {
            "id": "fc1", "type": "function_call", "status": "completed" if full else "in_progress", "call_id": "call_1",
            "name": "weather", "arguments": ARGUMENTS if full else "",
        }
    content = [{"type": "output_text", "text": "Hello 北京 😀", "annotations": []}] if full else []
    return {"id": "m1", "type": "message", "role": "assistant", "status": "completed" if full else "in_progress", "content": content}


def responses_events(script):
    yield {"type": "response.created", "response": response("in_progress", [])}
    yield {"type": "response.output_item.added", "output_index": 0, "item": output_item(script, False)}
    if script == "tools":
        for piece in (ARGUMENTS[:9], ARGUMENTS[9:]):
            yield {"type": "response.function_call_arguments.delta", "item_id": "fc1", "output_index": 0, "delta": piece}
        yield "BREAK"
        yield {"type": "response.function_call_arguments.done", "item_id": "fc1", "output_index": 0, "name": "weather", "arguments": ARGUMENTS}
    else:
        part = {"type": "output_text", "text": "", "annotations": []}
        yield {"type": "response.content_part.added", "item_id": "m1", "output_index": 0, "content_index": 0, "part": part}
        for text in ("Hello", " 北京 😀"):
            yield {"type": "response.output_text.delta", "item_id": "m1", "output_index": 0, "content_index": 0, "delta": text, "logprobs": []}
        yield "BREAK"
        yield {"type": "response.output_text.done", "item_id": "m1", "output_index": 0, "content_index": 0, "text": "Hello 北京 😀", "logprobs": []}
    yield {"type": "response.output_item.done", "output_index": 0, "item": output_item(script, True)}
    yield {"type": "response.completed", "response": response("completed", [output_item(script, True)])}


def responses_stream(script, ask):
    for number, data in enumerate(responses_events(script)):
        yield data if data == "BREAK" else named({**data, "sequence_number": number})


def responses_whole(script, ask):
    return response("completed", [output_item(script, True)])


def messages_stream(script, ask):
    message = {
        "id": "m1", "type": "message", "role": "assistant", "content": [], "model": "claude-scripted", "stop_reason": None,
        "stop_sequence": None, "usage": {"input_tokens": 9, "output_tokens": 1},
    }
    yield named({"type": "message_start", "message": message})
    yield named({"type": "ping"})
    if script == "tools":
        block = {"type": "tool_use", "id": "toolu_1", "name": "weather", "input": {}}
        deltas = [{"type": "input_json_delta", "partial_json": piece} for piece in (ARGUMENTS[:9], ARGUMENTS[9:])]
    else:
        block = {"type": "text", "text": ""}
        deltas = [{"type": "text_delta", "text": text} for text in ("Hello", " 北京 😀")]
    yield named({"type": "content_block_start", "index": 0, "content_block": block})
    for delta in deltas:
        yield named({"type": "content_block_delta", "index": 0, "delta": delta})
    yield "BREAK"
    yield named({"type": "content_block_stop", "index": 0})
    reason = "tool_use" if script == "tools" else "end_turn"
    yield named({"type": "message_delta", "delta": {"stop_reason": reason, "stop_sequence": None}, "usage": {"output_tokens": 4}})
    yield named({"type": "message_stop"})


def messages_whole(script, ask):
    block = {"type": "text", "text": "Hello 北京 😀"}
    if script == "tools":
        block = {"type": "tool_use", "id": "toolu_1", "name": "weather", "input": json.loads(ARGUMENTS)}
    return {
        "id": "m1", "type": "message", "role": "assistant", "content": [block], "model": "claude-scripted",
        "stop_reason": "tool_use" if script == "tools" else "end_turn", "stop_sequence": None,
        "usage": {"input_tokens": 9, "output_tokens": 4},
    }


APIS = {
    "/v1/chat/completions": (chat_stream, chat_whole),
    "/v1/completions": (completions_stream, completions_whole),
    "/v1/responses": (responses_stream, responses_whole),
    "/v1/messages": (messages_stream, messages_whole),
}

OWN_ERRORS = {
    "/v1/messages": {"type": "error", "error": {"type": "overloaded_error", "message": "engine on fire"}},
}


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def do_POST(self):
        ask = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        script = self.headers.get("X-Script", "text")
        if script.isdigit():
            error = OWN_ERRORS.get(self.path, {"error": {"message": "engine on fire", "type": "server_error", "code": None}})
            return self.document(int(script), error)
        stream, whole = APIS[self.path.split("?")[0]]
        if not ask.get("stream"):
            return self.document(200, whole(script, ask))
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        self.stream(stream(script, ask), self.headers.get("X-Break"))

    def document(self, status, document):
        body = json.dumps(document, ensure_ascii=False).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def stream(self, events, how):
        for text in events:
            if text != "BREAK":
                self.chunk(text)
            elif how == "stall":
                time.sleep(0.6)
            elif how:
                return self.break_off(how)
        self.wfile.write(b"0\r\n\r\n")

    def break_off(self, how):
        self.close_connection = True
        if how == "own-error":
            error = OWN_ERRORS.get(self.path)
            self.chunk(named(error) if error else event({"error": {"message": "engine on fire", "code": 500}}))
            self.wfile.write(b"0\r\n\r\n")
        elif how == "torn":
            self.chunk('data: {"type": "con')
        elif how == "no-end":
            self.wfile.write(b"0\r\n\r\n")
        if how in ("reset", "torn"):
            self.wfile.flush()
            self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))

    def chunk(self, text):
        data = text.encode()
        self.wfile.write(b"%x\r\n%s\r\n" % (len(data), data))


class Engine:
    def __init__(self):
        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        self.addr = "127.0.0.1:%d" % self.server.server_address[1]
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def close(self):
        self.server.shutdown()
        self.server.server_close()


class ScriptedGround(grounds.Ground):
    """A gateway with the models `scripted`, `claude-scripted`, and `claude`, which the simulator answers."""

    def __init__(self, binary):
        self.engine = Engine()
        super().__init__(binary)

    def _config(self, admin):
        self.admin = admin

        def pool(name, model, protocol, addr):
            return f"""
[[pool]]
name = "{name}"
protocol = "{protocol}"
models = ["{model}"]
backends = [{{ addr = "{addr}" }}]
stream = {{ heartbeat = "100ms" }}
retry = {{ attempts = 1 }}
"""

        return (
            super()._config(admin)
            + pool("scripted", "scripted", "openai", self.engine.addr)
            + pool("claude-scripted", "claude-scripted", "anthropic", self.engine.addr)
            + pool("claude", "claude", "anthropic", self.sim_addr)
        )

    def metric(self, series):
        """One series of the gateway's metrics; zero while it is not there."""
        lines = grounds.get(f"http://{self.admin}/metrics")[1].decode().splitlines()
        found = [line.rsplit(" ", 1)[1] for line in lines if line.rsplit(" ", 1)[0] == series]
        return float(found[0]) if found else 0.0

    def close(self):
        super().close()
        self.engine.close()
