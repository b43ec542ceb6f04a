// Calls a script of Tatami by ioredis: a file to copy, with tatami.js.
import fs from 'node:fs'

// client: new Redis(url, { stringNumbers: true, maxRetriesPerRequest: 0 }). A JavaScript
// number has 53 bits; and with retries a settlement whose reply was lost is sent again.
// path: of a script. Returns call, which answers numbers as strings.
export function script(client, path) {
  const { stringNumbers, maxRetriesPerRequest } = client.options
  if (!stringNumbers || maxRetriesPerRequest !== 0) throw new Error('the client needs stringNumbers: true, maxRetriesPerRequest: 0')
  const name = `tatami ${path}`
  client.defineCommand(name, { lua: fs.readFileSync(path, 'utf8') })
  return function call(keys, args) {
    // EVAL once on each connection, then EVALSHA, and EVAL again on NOSCRIPT.
    return client[name](keys.length, ...keys, ...args.map(String))
  }
}
