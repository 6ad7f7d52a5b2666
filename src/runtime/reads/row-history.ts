import { RefoldError } from '../../errors.ts';
import type { RecordedEvent } from '../../events/event.ts';
import type { EventFamily } from '../../events/event-family.ts';
import type { Row } from '../../projections/columns/row-codec.ts';
import type { RowMemory } from '../../projections/fold/fold.ts';
import { foldInTurns, stepsByPolicy } from '../../projections/fold/fold-by-policy.ts';
import { keyText, type Projection, type RowKey } from '../../projections/projection/projection.ts';
import type { RowVersion } from '../../schema/contract/operation-context.ts';
import { readStream } from '../../store/log/read-stream.ts';
import type { Database } from '../../store/postgres/database.ts';
import { readLeftOut } from '../../store/processors/left-out.ts';
import { ofOneAnswer } from '../../store/statements/answer-size.ts';
import type { Queryable } from '../../store/statements/statement.ts';

/** Returns every state that a row has had, each with the event that led to it. */
export type RowHistory = (projection: Projection, key: RowKey) => Promise<readonly RowVersion[]>;

// All of them are held in memory, each with its row. Usual streams are far shorter, and nobody reads a longer history.
const maxEvents = 20_000;

/**
 * Folds a row's own events again, as a rebuild up to each of them would. It leaves out the events that its table lacks today: dead letters,
 * skipped events and discarded ones.
 *
 * @throws RefoldError `QUERY_TOO_COMPLEX` if the row has more than 20,000 events, `ANSWER_TOO_LARGE` if they have more bytes than an answer
 */
export function createRowHistory(db: Queryable, log: Database): RowHistory {
  return async (projection, key) => {
    const text = keyText(key);
    const answer = ofOneAnswer(log, log.answerSize());
    const all = await eventsOfRow((family, streamId) => readStream(answer, family, streamId), projection, key);
    const positions = all.map(({ position }) => position);
    const notInTable = await readLeftOut(db, projection, key, positions);
    const events = all.filter(({ position }) => !notInTable.has(position));
    const steps = stepsByPolicy(projection, events, new Set(), () => {});
    let row: Row | null = null;
    const memory: RowMemory = {
      get: () => row,
      set(_text, _key, next) {
        row = next;
      },
    };
    const blocked = new Set<string>();
    const versions: RowVersion[] = [];
    for (const step of steps) {
      if (step.text !== text) continue;
      const before: Row | null = row;
      let isFolded = true;
      const leaveOut = () => {
        isFolded = false;
      };
      await foldInTurns(projection, [step], memory, { freeze: false, blocked, leaveOut });
      if (isFolded) versions.push({ event: step.event, before, row });
    }
    return versions;
  };
}

/**
 * Returns a row's own events in log order. A projection may read several families with streams of the same id.
 *
 * @throws RefoldError `QUERY_TOO_COMPLEX` if the row has more than 20,000 events
 */
export async function eventsOfRow(
  read: (family: EventFamily, streamId: string) => AsyncIterable<RecordedEvent>,
  projection: Projection,
  key: RowKey,
): Promise<readonly RecordedEvent[]> {
  const streamId = projection.history?.(key);
  if (streamId === undefined) throw new TypeError(`${projection.id} declares no history`); // such fields are not in the schema
  const events: RecordedEvent[] = [];
  for (const { family: name, types } of projection.filter) {
    const family = projection.families.find((declared) => declared.name === name);
    if (!family) continue;
    for await (const event of read(family, streamId)) {
      if (event.position <= projection.startAfter || !types.includes(event.type)) continue;
      events.push(event);
      if (events.length > maxEvents)
        throw new RefoldError(
          'QUERY_TOO_COMPLEX',
          `The row ${keyText(key)} of ${projection.id} has more than ${maxEvents} events.`,
        );
    }
  }
  return projection.filter.length === 1 ? events : events.sort((a, b) => (a.position < b.position ? -1 : 1));
}
