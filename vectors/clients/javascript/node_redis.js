// Calls a script of Tatami by node-redis: a file to copy, with tatami.js.
import crypto from 'node:crypto'
import fs from 'node:fs'
import { RESP_TYPES } from 'redis'

// path: of a script. Returns call, which answers numbers as strings.
// node-redis never sends again what it has sent.
export function script(client, path) {
  const text = fs.readFileSync(path, 'utf8')
  const sha = crypto.createHash('sha1').update(text).digest('hex')
  const exact = client.withTypeMapping({ [RESP_TYPES.NUMBER]: String }) // a JavaScript number has 53 bits
  return function call(keys, args) {
    const words = { keys, arguments: args.map(String) }
    const load = (e) => e.message.startsWith('NOSCRIPT') ? exact.eval(text, words) : Promise.reject(e)
    return exact.evalSha(sha, words).catch(load)
  }
}
