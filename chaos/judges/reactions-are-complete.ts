import type { RecordedEvent } from '../../src/index.ts';
import { type AuditedStep, readMessages, type SentMessage } from '../audit.ts';
import { order, parcel } from '../domain.ts';
import type { Judge } from './judge.ts';

// A former owner may still be sending a message when the next owner has begun. It stalls for seconds at most.
const latestMs = 30_000;

export const reactionsAreComplete: Judge = {
  name: 'reactions-are-complete',
  promise:
    'a workflow runs each step once, in order; each message is sent, and sent again only after a failure or by a new owner',
  async differences({ db, events, steps }) {
    const placed = events.filter(({ family, type }) => family === order.name && type === 'Placed');
    const claims = steps.filter((step) => step.name === 'messages' && step.epoch !== step.epochBefore);
    return [...parcelDifferences(placed, events), ...messageDifferences(placed, await readMessages(db), claims)];
  },
};

function parcelDifferences(placed: readonly RecordedEvent[], events: readonly RecordedEvent[]): readonly string[] {
  const found: string[] = [];
  const parcels = new Map<string, number>();
  const numbers = new Map<string, number>();
  for (const { family, streamId, payload } of events) {
    if (family !== parcel.name) continue;
    const { order: orderId, append, number } = payload as { order: string; append: number; number: number }; // checked when it was written
    parcels.set(`${orderId} ${append}`, (parcels.get(`${orderId} ${append}`) ?? 0) + 1);
    const next = (numbers.get(streamId) ?? 0) + 1;
    if (number !== next) found.push(`${streamId}: expected parcel ${next}, but ${number} was dispatched`);
    numbers.set(streamId, number);
  }
  for (const { streamId, payload, position } of placed) {
    const name = `${streamId} ${(payload as { append: number }).append}`; // each has its mark
    const count = parcels.get(name) ?? 0;
    if (count !== 1) found.push(`the order at ${position} (${name}) led to ${count} parcels`);
    parcels.delete(name);
  }
  return [...found, ...[...parcels.keys()].map((name) => `a parcel was dispatched for ${name}, which is not an order`)];
}

function messageDifferences(
  placed: readonly RecordedEvent[],
  messages: readonly SentMessage[],
  claims: readonly AuditedStep[],
): readonly string[] {
  const found: string[] = [];
  const sent = Map.groupBy(messages, ({ id }) => id);
  for (const { id, position } of placed) {
    if (!sent.has(`messages/${id}`)) found.push(`no message was sent for the order at ${position}`);
  }
  // A higher attempt number shows a failure. The same attempt number again must come from another owner.
  for (const tries of Map.groupBy(messages, ({ id, attempt }) => `${id}, attempt ${attempt},`)) {
    const [name, [first, ...again]] = tries;
    const [from, to] = [first?.at ?? 0, again.at(-1)?.at ?? 0];
    const owners = claims.filter(({ at }) => at >= from - latestMs && at <= to).length;
    if (again.length > owners)
      found.push(`${name} was sent ${again.length + 1} times, but there were only ${owners} new owners meanwhile`);
  }
  return found;
}
