import { setTimeout as pause } from 'node:timers/promises';
import { isDeepStrictEqual } from 'node:util';
import { readSteps } from '../chaos/audit.ts';
import { balance } from '../chaos/domain.ts';
import { readExpectation } from '../chaos/expectation.ts';
import { logIsLedger } from '../chaos/judges/log-is-ledger.ts';
import { noTableIsLeftOver } from '../chaos/judges/no-table-is-left-over.ts';
import { reactionsAreComplete } from '../chaos/judges/reactions-are-complete.ts';
import { registryIsWhole } from '../chaos/judges/registry-is-whole.ts';
import { streamsHaveNoGaps } from '../chaos/judges/streams-have-no-gaps.ts';
import type { Ledger } from '../chaos/ledger.ts';
import { noTrials } from '../chaos/trials/trials.ts';
import { beginning, type Projection, type RecordedEvent } from '../src/index.ts';
import type { Row } from '../src/projections/columns/row-codec.ts';
import { defaultStore, keyText, storedIn } from '../src/projections/projection/projection.ts';
import { readStatus } from '../src/runtime/monitoring/status.ts';
import type { EventLog } from '../src/store/event-log.ts';
import type { Database } from '../src/store/postgres/database.ts';
import { readDeadLetters } from '../src/store/processors/dead-letters.ts';
import { readReactors } from '../src/store/reactors/reactors.ts';
import { readRegistry } from '../src/store/registry/registry.ts';
import { naiveApi, withNames } from '../test/refold/naive-answers.ts';
import { families as thingFamilies } from '../test/refold/things.ts';
import { storedTable } from '../test/support/folded-table.ts';
import { difference } from './difference.ts';
import type { Session } from './session.ts';
import { type createRandomOperations, seenBy, viewers } from './thing-client.ts';
import type { Watcher } from './watcher.ts';
import type { RestingWatch } from './watches.ts';

export interface RestOptions {
  readonly db: Database;
  readonly log: EventLog;
  readonly ledger: Ledger;
  readonly projections: readonly Projection[];
  /** Whether a process declares the version. A version that no process declares stays where it is until it is retired. */
  declares(name: string, version: number): boolean;
  readonly sdl: string;
  readonly session: Session;
  readonly operations: ReturnType<typeof createRandomOperations>;
  readonly watchers: readonly (Watcher & { readonly watch: RestingWatch })[];
  /** How many random operations are compared. */
  readonly compared: number;
}

/** Much longer than a batch, a build or a poll takes, on a machine that is busy with other things. */
const patienceMs = 120_000;

/** The checks while nothing is appended. Keeps the part of the log that it has read. */
export function createRest({
  db,
  log,
  ledger,
  projections,
  declares,
  sdl,
  session,
  operations,
  watchers,
  compared,
}: RestOptions) {
  const events: RecordedEvent[] = [];
  const things = new Set<string>(Object.values(thingFamilies).map(({ name }) => name));

  async function readLog(): Promise<void> {
    const upTo = await log.head();
    for (let after = events.at(-1)?.position ?? beginning; after < upTo; ) {
      const page = await log.readAll({ after, upTo, limit: 10_000 });
      events.push(...page.events);
      after = page.upTo;
    }
  }

  /** Differences of the tables; and by name, the expected rows of each projection's newest version. */
  async function compareTables(): Promise<{ found: string[]; rows: Map<string, readonly Row[]> }> {
    const found: string[] = [];
    const rows = new Map<string, readonly Row[]>();
    for (const { name, version, state, tableName } of await readRegistry(db)) {
      if (state === 'retired' || !declares(name, version)) continue;
      const declared = name === 'balance' ? balance(version) : projections.find((one) => one.name === name);
      if (!declared) continue;
      const projection = storedIn(declared, tableName);
      const expected = await readExpectation(db, projection, events);
      found.push(...differences(`${name}@${version}, row`, expected.rows, await storedTable(db, projection)));
      const letters = (await readDeadLetters(db, tableName)).map(
        ({ key, position }) => `${key && keyText(key)} ${position}`,
      );
      const wanted = expected.letters.map(([key, position]) => `${key} ${position}`);
      if (!isDeepStrictEqual(letters.toSorted(), wanted.toSorted()))
        found.push(`${name}@${version}: its dead letters are [${letters}], expected [${wanted}]`);
      const decoded = [...expected.rows.values()].map((row) =>
        declared.codec.decode(row as Readonly<{ [name: string]: unknown }>),
      );
      rows.set(name, decoded);
    }
    return { found, rows };
  }

  async function compareAnswers(rows: ReadonlyMap<string, readonly Row[]>): Promise<string[]> {
    const naive = naiveApi(sdl, projections, new Map(projections.map((one) => [one, rows.get(one.name) ?? []])));
    const found: string[] = [];
    operations.forgetCursors();
    for (let n = 0; n < compared; n++) {
      const operation = operations.next();
      const asked = await operations.withCursors(operation);
      const viewer = viewers[n % viewers.length] ?? '';
      if (!asked) continue;
      const { data, errors } = await naive.answer(operation, seenBy(viewer));
      const outcome = await session.ask({
        kind: 'compared document',
        ...asked,
        viewer,
        executor: n % 3 === 0,
        allowed: ['BAD_USER_INPUT'],
      });
      if (outcome.kind === 'failed') continue;
      const shown = outcome.kind === 'answered' ? withNames(outcome.data, projections) : 'refused';
      const right = errors ? 'refused' : JSON.parse(JSON.stringify(data));
      const wrong = difference(shown, right);
      if (wrong) found.push(`a response differs from a naive evaluation: ${wrong}: ${JSON.stringify(asked)}`);
    }
    operations.forgetCursors();
    const waiting = new Set(watchers);
    const deadline = Date.now() + patienceMs;
    let last: string[] = [];
    while (waiting.size > 0) {
      last = [];
      for (const watcher of waiting) {
        const wrong = await watcher.watch.difference({ naive, rows });
        if (wrong === undefined) waiting.delete(watcher);
        else last.push(`${watcher.watch.name} over ${watcher.over}: ${wrong}`);
      }
      if (Date.now() > deadline) break;
      if (waiting.size > 0) await pause(100);
    }
    return waiting.size > 0 ? [...found, ...last] : found;
  }

  return {
    /** A sentence for each difference. */
    async look(): Promise<readonly string[]> {
      const restless = await untilAtRest(db, log, declares);
      if (restless.length > 0) return restless;
      await readLog();
      const { found, rows } = await compareTables();
      const marked = events.filter(({ family }) => !things.has(family));
      const evidence = {
        db,
        stores: [{ name: defaultStore, db }],
        ledger,
        events: marked,
        steps: await readSteps({ name: defaultStore, db }),
        failOvers: [],
        boundMs: { kill: 0, stall: 0, 'cut off': 0 },
        storeOutages: [],
        heldStreams: [],
        trials: noTrials(),
        answers: [],
        feeds: [],
        feedPatienceMs: 0,
      };
      for (const judge of [logIsLedger, reactionsAreComplete, registryIsWhole, noTableIsLeftOver])
        found.push(...(await judge.differences(evidence)));
      found.push(...(await streamsHaveNoGaps.differences({ ...evidence, events })));
      return [...found, ...(await compareAnswers(rows))];
    },
  };
}

function differences(
  what: string,
  expected: ReadonlyMap<string, unknown>,
  stored: ReadonlyMap<string, unknown>,
): string[] {
  return [...new Set([...expected.keys(), ...stored.keys()])].flatMap((key) => {
    const [wanted, there] = [expected.get(key), stored.get(key)];
    if (isDeepStrictEqual(wanted, there)) return [];
    return [`${what} ${key}: expected ${JSON.stringify(wanted ?? null)}, found ${JSON.stringify(there ?? null)}`];
  });
}

async function untilAtRest(db: Database, log: EventLog, declares: RestOptions['declares']): Promise<readonly string[]> {
  const deadline = Date.now() + patienceMs;
  for (;;) {
    const head = await log.head();
    const behind = [
      ...(await readStatus(db, log))
        .filter(
          ({ name, version, state, position, rebuild }) =>
            state !== 'retired' && declares(name, version) && (position < head || state === 'building' || rebuild),
        )
        .map(
          ({ name, version, state, position, processor, owner }) =>
            `${name}@${version} is ${state} at ${position} of ${head}, ${processor}, owned by ${owner ?? 'nobody'}`,
        ),
      ...(await readReactors(db))
        .filter(({ checkpoint }) => checkpoint < head)
        .map(({ name, checkpoint, status }) => `the reactor ${name} is at ${checkpoint} of ${head}, ${status}`),
    ];
    if (behind.length === 0 || Date.now() > deadline) return behind;
    await pause(100);
  }
}
