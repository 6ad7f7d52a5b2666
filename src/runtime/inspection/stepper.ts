import { RefoldError } from '../../errors.ts';
import type { RecordedEvent } from '../../events/event.ts';
import type { GlobalPosition } from '../../events/global-position.ts';
import type { Row } from '../../projections/columns/row-codec.ts';
import { hiddenText } from '../../projections/declaration/hidden-values.ts';
import { fold, foldSteps } from '../../projections/fold/fold.ts';
import { isEvolveFailure } from '../../projections/fold/fold-failures.ts';
import { rowKeyOf } from '../../projections/projection/given-key.ts';
import { keyText, type Projection, type RowKey, storedIn } from '../../projections/projection/projection.ts';
import { readStream } from '../../store/log/read-stream.ts';
import { readLeftOut } from '../../store/processors/left-out.ts';
import { readVersion } from '../../store/registry/registry.ts';
import { ofOneAnswer, takeFrom } from '../../store/statements/answer-size.ts';
import { exactJson } from '../../store/statements/column-parsers.ts';
import type { AnswerSize } from '../../store/statements/statement.ts';
import { eventsOfRow } from '../reads/row-history.ts';
import type { InspectedApplication } from './application.ts';

/** What an event did to a row in one version. */
export type StepOutcome = 'folded' | 'ignored' | 'failed' | 'leftOut';

/** A row in one version, before and after an event. */
export interface RowState {
  readonly version: string;
  readonly outcome: StepOutcome;
  /** As JSON by column, without hidden values; null if there was no row. */
  readonly before: Readonly<Record<string, unknown>> | null;
  readonly after: Readonly<Record<string, unknown>> | null;
  readonly changed: readonly string[];
  /** Why the event failed or is left out. */
  readonly message: string | null;
}

export interface RowStep {
  readonly position: GlobalPosition;
  /** One for each version, in the order of their numbers. */
  readonly states: readonly RowState[];
}

export interface SteppedRow {
  readonly key: RowKey;
  readonly versions: readonly Projection[];
  readonly steps: readonly RowStep[];
}

/**
 * Folds a row's own events with the declared code of several versions at the same time, and keeps the row before and after each. Writes nothing.
 * What a table leaves out (dead letters, skipped and discarded events) is left out here, too.
 *
 * @throws RefoldError `BAD_USER_INPUT` if no such version has a history, or for a key that is none; `ANSWER_TOO_LARGE` if the row's events, or
 *   all states of the row, are larger than an answer
 */
export async function stepRow(
  { find, db: logDb, config }: InspectedApplication,
  { name, key: given, numbers }: { name: string; key: unknown; numbers: readonly number[] | undefined },
): Promise<SteppedRow> {
  const versions = config.projections
    .filter((one) => one.name === name && one.history !== undefined && (numbers?.includes(one.version) ?? true))
    .toSorted((a, b) => a.version - b.version);
  const [first] = versions;
  if (!first)
    throw new RefoldError(
      'BAD_USER_INPUT',
      `The application declares no such version of '${name}' with 'history', which leads from a row to its stream.`,
    );
  const key = rowKeyOf(first, given);
  const answer = ofOneAnswer(logDb, logDb.answerSize());
  const shown = logDb.answerSize();
  const folded = await Promise.all(
    versions.map(async (declared) => {
      const { db } = await find.of(declared.name, declared.version);
      const found = await readVersion(db, declared);
      const projection = found ? storedIn(declared, found.tableName) : declared;
      const events = await eventsOfRow((family, streamId) => readStream(answer, family, streamId), projection, key);
      const leftOut = await readLeftOut(
        db,
        projection,
        key,
        events.map(({ position }) => position),
      );
      return foldRow(projection, key, events, leftOut, shown);
    }),
  );
  const positions = new Set(folded.flatMap((states) => [...states.keys()]));
  const ordered = [...positions].toSorted((a, b) => (a < b ? -1 : 1));
  const steps = ordered.map((position) => ({
    position,
    states: folded.map(
      (states, index) => states.get(position) ?? unchanged(states, versions[index] as Projection, ordered, position),
    ), // one for each version
  }));
  return { key, versions, steps };
}

/** The state of a version at an event that it does not handle: that after its last event before. */
function unchanged(
  states: ReadonlyMap<GlobalPosition, RowState>,
  { id }: Projection,
  ordered: readonly GlobalPosition[],
  position: GlobalPosition,
): RowState {
  const last = ordered.findLast((one) => one < position && states.has(one));
  const row = (last !== undefined && states.get(last)?.after) || null;
  return { version: id, outcome: 'ignored', before: row, after: row, changed: [], message: null };
}

function foldRow(
  projection: Projection,
  key: RowKey,
  events: readonly RecordedEvent[],
  leftOut: ReadonlySet<bigint>,
  size: AnswerSize | undefined,
): Map<GlobalPosition, RowState> {
  const text = keyText(key);
  let row: Row | null = null;
  const memory = {
    get: () => row,
    set: (_text: string, _key: RowKey, next: Row | null) => {
      row = next;
    },
  };
  const states = new Map<GlobalPosition, RowState>();
  let shown = shownRow(projection, row, size);
  for (const event of events) {
    const before = shown;
    const { outcome, message } = leftOut.has(event.position)
      ? { outcome: 'leftOut' as const, message: 'The table leaves it out: a dead letter, skipped or discarded.' }
      : foldOne(projection, text, event, memory);
    shown = shownRow(projection, row, size);
    const changed = Object.keys(projection.columns).filter(
      (name) => JSON.stringify(before?.[name]) !== JSON.stringify(shown?.[name]),
    );
    states.set(event.position, { version: projection.id, outcome, before, after: shown, changed, message });
  }
  return states;
}

function foldOne(
  projection: Projection,
  text: string,
  event: RecordedEvent,
  memory: Parameters<typeof fold>[2],
): { readonly outcome: StepOutcome; readonly message: string | null } {
  try {
    const steps = foldSteps(projection, [event]).filter((step) => step.text === text);
    if (steps.length === 0) return { outcome: 'ignored', message: 'Its key is that of other rows.' };
    fold(projection, steps, memory, { freeze: false });
    return { outcome: 'folded', message: null };
  } catch (error) {
    if (isEvolveFailure(error)) return { outcome: 'failed', message: error.message };
    throw error;
  }
}

/**
 * A row as JSON, with `(hidden)` in place of values that are personal or have an access rule.
 *
 * @param size of the answer that it is for
 */
export function shownRow(
  { codec, hidden }: Projection,
  row: Row | null,
  size?: AnswerSize,
): Readonly<Record<string, unknown>> | null {
  if (row === null) return null;
  const shown = Object.entries(codec.encode(row)).map(([name, value]) => [
    name,
    hidden.has(name) && value !== null ? hiddenText : value,
  ]);
  const text = JSON.stringify(Object.fromEntries(shown), bigintsAsText);
  takeFrom(size, text.length);
  return exactJson(text) as Readonly<Record<string, unknown>>; // the text of an object
}

const bigintsAsText = (_: string, value: unknown) => (typeof value === 'bigint' ? value.toString() : value);
