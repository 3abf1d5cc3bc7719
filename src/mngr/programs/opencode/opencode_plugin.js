// Runs inside an agent's own OpenCode: tells mngr its state, keeps a record of the conversation as plain lines, and
// hands over the messages that wait in the inbox. All files are in the agent's home, which is found from where this
// file is: HOME/config/opencode/plugins/mngr.js. Another OpenCode that the agent's tools start is not the agent: only
// the first process of a start is, and its tools find the user's own directories in their environment again.
import { randomBytes } from "node:crypto"
import { appendFileSync, readdirSync, readFileSync, unlinkSync, writeFileSync } from "node:fs"
import { fileURLToPath } from "node:url"

const home = fileURLToPath(new URL("../../..", import.meta.url))
const inbox = `${home}inbox`
const given = process.env.MNGR_OPENCODE
if (given) {
  delete process.env.MNGR_OPENCODE
  for (const name of ["XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_STATE_HOME"]) {
    const own = process.env[`MNGR_OWN_${name}`]
    delete process.env[`MNGR_OWN_${name}`]
    if (own) process.env[name] = own
    else delete process.env[name]
  }
}
const settings = given ? JSON.parse(given) : {}
const mine = Boolean(given) && claimed()

function claimed() {
  try {
    writeFileSync(`${home}owner`, `${process.pid}\n`, { flag: "wx", mode: 0o600 })
    return true
  } catch {
    return false
  }
}

let client // of the newest instance: OpenCode makes a new one when its configuration changes
let session = settings.session || "" // the one that messages go to
let choice = { agent: settings.agent || undefined, model: settings.model || undefined } // of the last prompt
let ready = false
let told = ""
const children = new Set() // sessions of its subagents
const working = new Map() // session -> what it reported last, unless that is idle
const unanswered = new Map() // session -> its last prompt, until an answer to it begins
const asked = new Map() // request -> { session, reason }
const failures = new Map() // session -> why its last turn failed
const failing = new Map() // session -> until when a turn that failed may not be over, and how often it said that it is
const prompts = new Set() // messages of the user
const noted = new Map() // what is in the record already: id -> form
let arrived = () => {} // called when a prompt is in OpenCode's own store

const now = () => new Date().toISOString().replace("Z", "000Z")
const append = (path, value) => appendFileSync(path, JSON.stringify(value) + "\n", { mode: 0o600 })
const pause = (milliseconds) => new Promise((done) => setTimeout(done, milliseconds))

function note(kind, id, form, value) {
  if (noted.get(id) === form) return
  noted.set(id, form)
  append(`${home}record.jsonl`, { timestamp: now(), [kind]: value })
}

function judged() {
  for (const { reason } of asked.values()) return ["BLOCKED", reason]
  for (const status of working.values()) {
    if (status.type !== "retry") continue
    const wait = retryAt(status.next)
    if (limited(status.message)) return ["BLOCKED", `rate limit: ${wait}: ${status.message}`]
    return ["RUNNING", `${wait}: ${status.message}`]
  }
  if (working.size) return ["RUNNING", ""]
  const failure = failures.get(session) || ""
  return [/^(login|credit|model|rate limit): /.test(failure) ? "BLOCKED" : "WAITING", failure]
}

function report() {
  if (!ready) return
  const [state, reason] = judged()
  if (told === `${state} ${reason}`) return
  told = `${state} ${reason}`
  const event = { event_id: `evt-${randomBytes(16).toString("hex")}`, timestamp: now(), source: "opencode" }
  append(`${home}../events.jsonl`, { ...event, type: "state", state, reason })
}

// As `_LIMIT` in failing.py.
const limited = (text) =>
  /rate.?limit|usage limit|hit your [\w ]{0,20}limit|limit (was )?(reached|exceeded)|too.?many.?requests|quota|exhausted|overloaded|\b429\b/i.test(
    text || "",
  )

const unpaid = (text) => /credit balance|out of credits|insufficient.?(quota|funds|balance)|payment required/i.test(text)
const gone = (text) => /\bmodel\b.{0,80}(not exist|not found|not supported|no longer|not available|no access)/i.test(text)
const retryAt = (moment) => `retry at ${new Date(Math.ceil(moment / 1000) * 1000).toISOString().replace(".000", "")}`

function failed({ name, message, data }) {
  const said = String(data?.message || message || name).slice(0, 500)
  const code = data?.statusCode
  if (code === 402 || unpaid(said)) return `credit: ${said}`
  if (name === "ProviderModelNotFoundError" || (code !== 429 && gone(said))) return `model: ${said}`
  if (name === "ProviderAuthError" || code === 401 || code === 403) return `login: ${said}`
  if (code === 429) {
    const seconds = Number(data.responseHeaders?.["retry-after"])
    return seconds > 0 ? `rate limit: ${retryAt(Date.now() + seconds * 1000)}: ${said}` : `rate limit: ${said}`
  }
  return `the last turn failed: ${said}`
}

const heard = {
  "session.created": ({ info }) => {
    if (info.parentID) children.add(info.id)
    else if (!settings.interactive) session = info.id
    keep(info)
  },
  "session.updated": ({ info }) => keep(info),
  "session.deleted": ({ info }) => {
    note("removed", info.id, "removed", info.id)
    if (info.id === session) session = ""
  },
  // A turn that ends tells so twice: the second time must not hide that a prompt came in between.
  "session.status": ({ sessionID, status }) => {
    const ending = failing.get(sessionID)
    if (status.type === "idle" && ending && ++ending.idles > 1) failing.delete(sessionID)
    if (status.type !== "idle") working.set(sessionID, status)
    else if (!unanswered.has(sessionID)) {
      working.delete(sessionID)
      for (const [id, request] of asked) if (request.session === sessionID) asked.delete(id)
    }
    report()
  },
  "session.error": ({ sessionID, error }) => {
    unanswered.delete(sessionID || session)
    if (!error || error.name === "MessageAbortedError") return
    failures.set(sessionID || session, failed(error))
    failing.set(sessionID || session, { until: Date.now() + 4000, idles: 0 })
    report()
  },
  "permission.asked": ({ id, sessionID, permission, patterns }) => {
    const reason = `permission: ${permission}: ${(patterns || []).join(", ")}`
    asked.set(id, { session: sessionID, reason: reason.slice(0, 500) })
    report()
  },
  "permission.replied": ({ requestID }) => answered(requestID),
  "question.asked": ({ id, sessionID, questions }) => {
    const reason = `question: ${(questions || []).map((one) => one.question).join(" ")}`
    asked.set(id, { session: sessionID, reason: reason.slice(0, 500) })
    report()
  },
  "question.replied": ({ requestID }) => answered(requestID),
  "question.rejected": ({ requestID }) => answered(requestID),
  "message.updated": ({ info }) => {
    if (info.role === "user") prompts.add(info.id)
    else if (info.parentID >= unanswered.get(info.sessionID)) unanswered.delete(info.sessionID)
    const done = info.role === "user" || info.time?.completed || info.error
    note("message", info.id, done ? "whole" : "begun", info)
  },
  "message.removed": ({ messageID }) => note("removed", messageID, "removed", messageID),
  "message.part.removed": ({ partID }) => note("removed", partID, "removed", partID),
  "message.part.updated": ({ part }) => {
    const streamed = part.type === "text" || part.type === "reasoning"
    if (streamed && part.time && !part.time.end) return
    if (part.type === "tool" && part.state.status === "pending") return
    note("part", part.id, part.type === "tool" ? part.state.status : "whole", part)
    if (part.type === "text" && !part.synthetic && prompts.has(part.messageID)) received(part)
  },
}

function answered(id) {
  asked.delete(id)
  report()
}

function keep(info) {
  note("session", info.id, JSON.stringify([info.title, info.directory, info.parentID, info.revert]), info)
}

// The state comes first: whoever sees that the prompt has arrived must not take the agent for idle.
function received({ sessionID, messageID, id, text }) {
  if (children.has(sessionID) || noted.get(`prompt ${id}`)) return
  noted.set(`prompt ${id}`, "whole")
  failures.delete(sessionID)
  if (!working.has(sessionID)) working.set(sessionID, { type: "busy" })
  unanswered.set(sessionID, messageID)
  session = sessionID
  report()
  const payload = { prompt: text, session_id: sessionID, message_id: messageID }
  append(`${home}hooks.jsonl`, { timestamp: now(), hook: "UserPromptSubmit", payload })
  arrived(text)
}

const waiting = () => readdirSync(inbox).filter((name) => !name.endsWith(".draft")).sort()

// Each message is taken out before it is sent: a crash between the two loses it, which its sender sees, and never
// sends it twice. The next one follows when OpenCode has stored this one, so that they stay in order.
async function send(name) {
  const text = readFileSync(`${inbox}/${name}`, "utf8")
  unlinkSync(`${inbox}/${name}`)
  if (!session) await open()
  await settled()
  const stored = new Promise((done) => (arrived = (seen) => seen === text && done()))
  const body = { ...choice, parts: [{ type: "text", text }] }
  const { error } = await client.session.promptAsync({ path: { id: session }, body })
  if (error) throw error
  await Promise.race([stored, pause(10000)])
}

// A turn that failed says twice that it is over, a second or two apart. OpenCode stores a prompt that comes in between,
// and does not run it before the next one.
async function settled() {
  while (Date.now() < (failing.get(session)?.until || 0)) await pause(50)
  failing.delete(session)
}

function refused(error) {
  failures.set(session, failed(error?.name ? error : { name: JSON.stringify(error) }))
  report()
}

async function serveInbox() {
  for (;;) {
    for (const name of waiting()) await send(name).catch(refused)
    await pause(100)
  }
}

// An event that was missed would leave a wrong state for ever. Right after a prompt OpenCode is not busy yet.
async function verify() {
  let idle = 0
  for (;;) {
    await pause(5000)
    if (!working.size) continue
    const { data } = await client.session.status().catch(() => ({}))
    idle = data && !Object.keys(data).length ? idle + 1 : 0
    if (idle < 3) continue
    for (const map of [working, unanswered, asked]) map.clear()
    report()
  }
}

// A session with a title: OpenCode would ask the model for one, and not count what that costs. The screen follows to
// it as soon as there is one: asking before that is in vain.
async function open() {
  const made = await client.session.create({ body: { title: settings.title }, throwOnError: true })
  session = made.data.id
  show(session)
}

async function show(wanted) {
  for (let tries = 0; tries < 10 && session === wanted; tries++) {
    const event = { type: "tui.session.select", properties: { sessionID: wanted } }
    await client.tui.publish({ body: event }).catch(() => {})
    await pause(1000)
  }
}

async function begin() {
  const known = session ? await client.session.get({ path: { id: session } }) : {}
  if (known.data) keep(known.data)
  else session = ""
  for (const one of (await client.session.list()).data || []) if (one.parentID) children.add(one.id)
  ready = true
  if (!settings.interactive) return
  if (!session) await open()
  if (!waiting().length) {
    await warm()
    report()
  }
  serveInbox()
  verify()
}

// OpenCode loads much of itself only when it is needed, and answers nothing meanwhile, for seconds on a busy machine.
// An agent that is called ready must take a message at once.
async function warm() {
  const calls = [client.config.providers(), client.app.agents(), client.tool.ids(), client.command.list()]
  await Promise.allSettled(calls)
  const end = Date.now() + 10000
  for (let calm = 0; calm < 5 && Date.now() < end && !waiting().length; ) {
    const began = Date.now()
    await pause(50)
    calm = Date.now() - began < 200 ? calm + 1 : 0
  }
}

let directory = ""

export const mngr = async (input) => {
  if (!mine || (directory && directory !== input.directory)) return {}
  client = input.client
  if (!directory) {
    directory = input.directory
    setTimeout(() => begin().catch((error) => append(`${home}hooks.jsonl`, failure(error))), 0)
  }
  return {
    event: async ({ event }) => {
      try {
        heard[event.type]?.(event.properties)
      } catch {} // a full disk must not end the agent
    },
    "chat.message": async ({ sessionID }, { message }) => {
      if (children.has(sessionID)) return
      const { variant, ...model } = message.model || {}
      choice = { agent: message.agent, model: model.modelID ? model : undefined, variant }
    },
  }
}

const failure = (error) => ({ timestamp: now(), hook: "Failed", payload: { error: String(error?.stack || error) } })
