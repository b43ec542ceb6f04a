// Plays the vectors on the server at REDIS_URL: node play_ioredis.js [file ...]; needs the package ioredis.
import Redis from 'ioredis'
import { script } from './ioredis.js'
import { play } from './play.js'

const options = { stringNumbers: true, maxRetriesPerRequest: 0 }
await play((protocol) => new Redis(process.env.REDIS_URL, { ...options, protocol }), script,
  async (client, words) => {
    const answer = await client.callBuffer(...words)
    return words[0] === 'GET' || Array.isArray(answer) ? answer : String(answer)
  })
