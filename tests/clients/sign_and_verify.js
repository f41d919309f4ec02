// Verifies a request with the libraries of Standard Webhooks and of Svix, and signs its body with both.
import { text } from "node:stream/consumers";
import * as standard from "standardwebhooks";
import * as svix from "svix";

const { secret, headers, body, id, now } = JSON.parse(await text(process.stdin));

const results = Object.entries({ standardwebhooks: standard, svix }).map(([name, { Webhook }]) => {
  const webhook = new Webhook(secret);
  return [name, { event: verify(webhook), signature: webhook.sign(id, new Date(now * 1000), body) }];
});
console.log(JSON.stringify(Object.fromEntries(results)));

function verify(webhook) {
  try {
    return webhook.verify(body, headers);
  } catch (error) {
    return error.message;
  }
}
