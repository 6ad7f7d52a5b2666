import { setTimeout as pause } from 'node:timers/promises';
import { seeded } from '../test/support/account-traffic.ts';
import { account } from './domain.ts';
import { type Draft, draftAppend } from './drafts.ts';
import { appendDraft } from './traffic.ts';
import type { World } from './world.ts';

/** A time in which a transaction held a stream, and no other fault was active. */
export interface HeldStream {
  readonly streamId: string;
  readonly heldMs: number;
  /** How many appends that do not need the stream were acknowledged meanwhile, and the longest time without one. */
  readonly others: number;
  readonly longestPauseMs: number;
}

/** Holds a stream, with appends to it that come one after the other, so that they are in several statements. Returns a line about the result. */
export async function holdStream({ db, log, ledger, heldStreams, options }: World, seconds: number): Promise<string> {
  const held = ledger.entries.findLast(
    ({ outcome, parts: [part, ...more] }) =>
      outcome === 'acknowledged' && part?.family === account.name && more.length === 0,
  );
  const streamId = held?.parts[0]?.streamId;
  if (streamId === undefined) return 'no stream yet';
  const random = seeded(options.seed + ledger.entries.length);
  const sent: Promise<void>[] = [];
  const from = Date.now();
  await db.transaction(async (tx) => {
    await tx.query({ text: 'select from refold.streams where stream_id = $1 for update', values: [streamId] });
    for (let part = 0; part < 3; part++) {
      sent.push(appendDraft(log, ledger, -1, draftOn(streamId, random)));
      await pause((seconds * 1_000) / 3);
    }
  });
  const to = Date.now();
  await Promise.all(sent);
  const times = ledger.entries
    .filter(
      ({ outcome, acknowledgedAt, parts }) =>
        outcome === 'acknowledged' &&
        acknowledgedAt > from &&
        acknowledgedAt < to &&
        parts.every((part) => part.streamId !== streamId),
    )
    .map(({ acknowledgedAt }) => acknowledgedAt)
    .toSorted((a, b) => a - b);
  const pauses = [...times, to].map((time, index) => time - (times[index - 1] ?? from));
  const longestPauseMs = Math.max(...pauses);
  heldStreams.push({ streamId, heldMs: to - from, others: times.length, longestPauseMs });
  return `${streamId}, ${times.length} appends to others, the longest pause was ${longestPauseMs} ms`;
}

function draftOn(streamId: string, random: () => number): Draft {
  for (;;) {
    const { parts, keyed } = draftAppend(random);
    const [part] = parts;
    if (part?.family === account) return { parts: [{ ...part, streamId }], exact: false, keyed };
  }
}
