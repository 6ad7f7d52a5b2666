import type { Projection } from '../../../src/projections/projection/projection.ts';
import type { VersionMap } from '../../../src/projections/projection/version-map.ts';
import {
  createLiveReadModels,
  type LiveReadModelSource,
  type LiveReadModelsOptions,
} from '../../../src/runtime/live/live-read-models.ts';
import { createPositions, type Positions } from '../../../src/runtime/reads/positions.ts';
import { createDatabase, type Database } from '../../../src/store/postgres/database.ts';
import { createNotifications, type Notifications } from '../../../src/store/postgres/notifications.ts';
import type { Elsewhere, Queryable, Statement } from '../../../src/store/statements/statement.ts';
import { readSchema } from '../../support/read-model-writer.ts';
import { createTestDatabase, type TestDatabase } from '../../support/test-database.ts';

/** A version map that a test changes by hand. */
export interface Stage {
  current(): VersionMap;
  pinned(): VersionMap;
  onChange(listener: () => void): () => void;
  /** What a poll of the registry does. @default nothing */
  refresh(): Promise<void>;
  serve(projection: Projection, active?: boolean): void;
}

export function createStage(): Stage {
  const listeners = new Set<() => void>();
  let revision = 0;
  const served = new Map<string, { projection: Projection; active: boolean; state: 'active' | 'building' }>();
  return {
    current: () => ({ revision: String(revision), served }),
    pinned: () => ({ revision: String(revision), served }),
    onChange(listener) {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
    refresh: async () => {},
    serve(projection, active = true) {
      revision++;
      served.set(projection.name, { projection, active, state: active ? 'active' : 'building' });
      for (const listener of [...listeners]) listener();
    },
  };
}

type LiveDatabase = Pick<TestDatabase, 'url' | 'drop'>;

/** A database for the test, the parts that subscriptions need, and a record of what they do. */
export interface LiveSetting {
  readonly database: LiveDatabase;
  readonly db: Database;
  readonly positions: Positions;
  readonly stage: Stage;
  readonly live: LiveReadModelSource;
  /** Texts of the statements that subscriptions ran. */
  readonly statements: string[];
  readonly errors: unknown[];
  /** If set, it may throw instead of letting a statement run. */
  intercept: (statement: Statement) => void;
  /** Another source of subscriptions over the same database, closed with the rest. */
  another(options: Partial<LiveReadModelsOptions>): LiveReadModelSource;
  close(): Promise<void>;
}

export const deaf: Pick<Notifications, 'on'> = { on: () => () => {} };
export const often = { min: 1, max: 5, step: 1 };
export const seldom = { min: 3_600_000, max: 3_600_000, step: 0 };

/** @param elsewhere of a read store. @default a database for all */
export async function createLiveSetting(
  create: () => Promise<LiveDatabase> = createTestDatabase,
  elsewhere?: Elsewhere,
): Promise<LiveSetting> {
  const testDatabase = await create();
  const db = createDatabase({ url: testDatabase.url, elsewhere });
  const reads = createDatabase({ url: testDatabase.url, pipeline: true, elsewhere });
  const notifications = createNotifications({ url: testDatabase.url });
  const head = async () => 0n as never; // no event log here
  const positions = createPositions({ db, notifications, timeout: 300_000, head });
  const stage = createStage();
  const sources: LiveReadModelSource[] = [];
  const setting: LiveSetting = {
    database: testDatabase,
    db,
    positions,
    stage,
    statements: [],
    errors: [],
    intercept: () => {},
    live: undefined as never, // set below
    another(options) {
      const source = createLiveReadModels({
        db: {
          ...reads,
          ...watched(reads),
          transaction: (work, how) => reads.transaction((tx) => work({ ...tx, ...watched(tx) }), how),
        },
        readSchema,
        versions: stage,
        positions,
        onError: (error) => setting.errors.push(error),
        ...options,
      });
      sources.push(source);
      return source;
    },
    async close() {
      for (const source of sources) await source.close();
      positions.close();
      await notifications.close();
      await reads.close();
      await db.close();
      await testDatabase.drop();
    },
  };
  return Object.assign(setting, { live: setting.another({}) });

  function watched(target: Queryable): Queryable {
    return {
      async query(statement) {
        setting.statements.push(statement.text);
        setting.intercept(statement);
        return target.query(statement);
      },
    };
  }
}

/** Waits for a condition on what happens in this process. */
export async function until(condition: () => boolean): Promise<void> {
  while (!condition()) await new Promise((resolve) => setTimeout(resolve, 2));
}

/** The next message. */
export async function pull<T>(messages: AsyncIterator<T>): Promise<T> {
  const { done, value } = await messages.next();
  if (done) throw new Error('Expected a message, but the subscription has ended.');
  return value;
}
