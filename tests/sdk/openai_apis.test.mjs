// The official `openai` npm SDK through the gateway before a scripted engine: text, tools and errors of each API,
// streamed and not. Run by test_openai_node.py, which names the gateway and the keys.

import assert from "node:assert/strict";
import { createRequire } from "node:module";
import { test } from "node:test";

// the SDK lies in the target folder, not beside this file
const { default: OpenAI } = await import(createRequire(process.env.SDK_FOLDER + "/").resolve("openai"));

const TEXT = "Hello 北京 😀";
const ARGUMENTS = { city: "北京", unit: "°C" };
const model = "scripted";
const parameters = { type: "object", properties: {} };

const client = new OpenAI({ apiKey: process.env.ACME_KEY, baseURL: process.env.BASE_URL, maxRetries: 0, timeout: 20_000 });

const options = (script, broken) => ({
  headers: { ...(script && { "X-Script": script }), ...(broken && { "X-Break": broken }) },
});

/** Each API: how it is asked, and the text in an event of its stream. */
const apis = {
  chat: {
    ask: (more, ...how) => {
      const messages = [{ role: "user", content: "hello there" }];
      return client.chat.completions.create({ model, messages, ...more }, options(...how));
    },
    text: (event) => event.choices[0]?.delta?.content ?? "",
  },
  completions: {
    ask: (more, ...how) => client.completions.create({ model, prompt: "hello", ...more }, options(...how)),
    text: (event) => event.choices[0]?.text ?? "",
  },
  responses: {
    ask: (more, ...how) => client.responses.create({ model, input: "hello", ...more }, options(...how)),
    text: (event) => (event.type === "response.output_text.delta" ? event.delta : ""),
  },
};

/** Reads a stream and keeps its text in `seen`, also where it breaks. */
async function read(api, stream, seen) {
  for await (const event of stream) seen.text += api.text(event);
  return seen.text;
}

for (const [name, api] of Object.entries(apis)) {
  test(`${name}: text streams`, async () => {
    assert.equal(await read(api, await api.ask({ stream: true }), { text: "" }), TEXT);
  });

  test(`${name}: heartbeats in a gap are nothing to it`, async () => {
    assert.equal(await read(api, await api.ask({ stream: true }, null, "stall"), { text: "" }), TEXT);
  });

  for (const broken of ["reset", "torn", "fin", "no-end", "own-error"]) {
    test(`${name}: a stream that breaks by ${broken} raises the SDK's own error`, async () => {
      const seen = { text: "" };
      const stream = await api.ask({ stream: true }, null, broken);
      const raised = await read(api, stream, seen).then(
        () => assert.fail("it completed"),
        (error) => error,
      );
      assert.ok(raised instanceof OpenAI.APIError, `${raised}`);
      assert.ok(!(raised instanceof OpenAI.APIConnectionError), `${raised}`);
      assert.equal(seen.text, TEXT);
    });
  }

  for (const stream of [true, false]) {
    test(`${name}: an upstream's status is its typed error, stream ${stream}`, async () => {
      await assert.rejects(api.ask({ stream }, "400"), OpenAI.BadRequestError);
      await assert.rejects(api.ask({ stream }, "429"), OpenAI.RateLimitError);
      await assert.rejects(api.ask({ stream }, "500"), OpenAI.InternalServerError);
    });
  }
}

test("text comes whole", async () => {
  assert.equal((await apis.chat.ask({})).choices[0].message.content, TEXT);
  assert.equal((await apis.completions.ask({})).choices[0].text, TEXT);
  assert.equal((await apis.responses.ask({})).output_text, TEXT);
});

test("a tool call streams and comes whole", async () => {
  const tools = [{ type: "function", function: { name: "weather", parameters } }];
  let name = "";
  let written = "";
  for await (const event of await apis.chat.ask({ stream: true, tools }, "tools")) {
    for (const call of event.choices[0]?.delta?.tool_calls ?? []) {
      name += call.function?.name ?? "";
      written += call.function?.arguments ?? "";
    }
  }
  assert.equal(name, "weather");
  assert.deepEqual(JSON.parse(written), ARGUMENTS);
  const whole = await apis.chat.ask({ tools }, "tools");
  assert.deepEqual(JSON.parse(whole.choices[0].message.tool_calls[0].function.arguments), ARGUMENTS);
});

test("a function call of a response streams and comes whole", async () => {
  const tools = [{ type: "function", name: "weather", parameters, strict: false }];
  let written = "";
  let last;
  for await (const event of await apis.responses.ask({ stream: true, tools }, "tools")) {
    if (event.type === "response.function_call_arguments.delta") written += event.delta;
    last = event;
  }
  assert.deepEqual(JSON.parse(written), ARGUMENTS);
  assert.equal(last.type, "response.completed");
  const whole = await apis.responses.ask({ tools }, "tools");
  assert.deepEqual(JSON.parse(whole.output[0].arguments), ARGUMENTS);
});
