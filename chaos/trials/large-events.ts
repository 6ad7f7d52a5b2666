import { order } from '../domain.ts';
import { heapMegabytes } from '../processes.ts';
import { appendDraft } from '../traffic.ts';
import type { World } from '../world.ts';

const perAppend = 4;
// V8 keeps two bytes for each character of a text that has one beyond Latin-1.
const note = `ж${'0123456789'.repeat(100_000)}`;
const eventMegabytes = (note.length * 2) / 1e6;

/** Appends more of them than a process has memory for. A process that gathers them ends by itself, which the settling notices. */
export async function appendLarge({ log, ledger }: World, heaps: number): Promise<void> {
  const appends = Math.ceil((heapMegabytes * heaps) / eventMegabytes / perAppend);
  const events = (append: number) =>
    Array.from({ length: perAppend }, (_, part) => ({
      type: 'Cancelled' as const,
      payload: { append, part, note },
    }));
  for (let n = 0; n < appends; n++) {
    const streamId = `large-${ledger.entries.length}`;
    await appendDraft(log, ledger, -1, { parts: [{ family: order, streamId, events }], exact: false, keyed: true });
  }
}
