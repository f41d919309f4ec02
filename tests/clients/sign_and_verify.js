// Verifies a request with each secret and the libraries of Standard Webhooks and of Svix. Both sign it with the first.
import { text } from "node:stream/consumers";
import * as standard from "standardwebhooks";
import * as svix from "svix";

const { secrets, headers, body, id, now } = JSON.parse(await text(process.stdin));

const results = Object.entries({ standardwebhooks: standard, svix }).map(([name, { Webhook }]) => {
  const webhooks = secrets.map((secret) => new Webhook(secret));
  return [name, { events: webhooks.map(verify), signature: webhooks[0].sign(id, new Date(now * 1000), body) }];
});
console.log(JSON.stringify(Object.fromEntries(results)));

function verify(webhook) {
  try {
    return webhook.verify(body, headers);
  } catch (error) {
    return error.message;
  }
}
