// Plays the vectors on the server at REDIS_URL: node play_node_redis.js [file ...]; needs the package redis.
import { createClient, RESP_TYPES } from 'redis'
import { script } from './node_redis.js'
import { play } from './play.js'

const typeMapping = { [RESP_TYPES.NUMBER]: String, [RESP_TYPES.BLOB_STRING]: Buffer }
await play((RESP) => createClient({ url: process.env.REDIS_URL, RESP }).on('error', () => {}).connect(), script,
  (client, words) => client.sendCommand(words, { typeMapping }))
