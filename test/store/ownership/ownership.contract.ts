import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import type { OwnershipKind } from '../../../src/config/runtime-options.ts';
import { globalPosition } from '../../../src/index.ts';
import type { Ownership, OwnershipLock } from '../../../src/store/ownership/ownership.ts';
import { createDatabase, type Database } from '../../../src/store/postgres/database.ts';
import { advanceCheckpoint, claimProcessor } from '../../../src/store/processors/checkpoints.ts';
import { insertVersions } from '../../../src/store/registry/declared-versions.ts';
import { readRegistry } from '../../../src/store/registry/registry.ts';
import { createTestDatabase, type TestDatabase } from '../../support/test-database.ts';
import { until } from '../../support/until.ts';
import { patiently } from './patient-owner.ts';
import { unitOf } from './unit-of.ts';

export interface OwnershipUnderTest {
  readonly kind: OwnershipKind;
  /** Opens an ownership as a separate process would, renewed every so many seconds if it is renewed at all. */
  open(url: string, renewEverySeconds: number): Ownership;
  /** Ends the ownership of a holder that is gone, if its end takes time. */
  letEnd?(db: Database, name: string): Promise<void>;
  /** Takes the ownership from its holder without the holder's knowledge. */
  takeAway(db: Database, name: string): Promise<void>;
}

/** What every kind of ownership guarantees. */
export function describeOwnership({ kind, open, letEnd, takeAway }: OwnershipUnderTest): void {
  describe(`ownership by ${kind}`, () => {
    let database: TestDatabase;
    let db: Database;
    const opened = new Set<Ownership>();
    beforeAll(async () => {
      database = await createTestDatabase();
      db = createDatabase({ url: database.url });
    });
    afterEach(async () => {
      for (const ownership of opened) await ownership.close();
      opened.clear();
    });
    afterAll(async () => {
      await db.close();
      await database.drop();
    });

    const openOne = (renewEverySeconds = 60) => {
      const ownership = open(database.url, renewEverySeconds);
      opened.add(ownership);
      return ownership;
    };
    const acquired = async (ownership: Ownership, name: string): Promise<OwnershipLock> => {
      const lock = await patiently(ownership, name);
      if (!lock) throw new Error(`'${name}' is held by somebody else`);
      return lock;
    };

    test('has one holder among many concurrent attempts', async () => {
      const processes = Array.from({ length: 8 }, openOne);
      const locks = await Promise.all(
        processes.flatMap((one) => [one.tryAcquire(unitOf('wanted')), one.tryAcquire(unitOf('wanted', 'rebuild'))]),
      );
      expect(locks.filter((_, index) => index % 2 === 0).filter((lock) => lock !== null)).toHaveLength(1);
      expect(locks.filter((_, index) => index % 2 === 1).filter((lock) => lock !== null)).toHaveLength(1);
      expect(await openOne().tryAcquire(unitOf('wanted', 'processor', 2))).not.toBeNull();
    });

    test('is decided for each unit alone, however many are attempted at once', async () => {
      const [first, second] = [openOne(), openOne()];
      const units = Array.from({ length: 40 }, (_, partition) => unitOf('many', 'processor', 1, partition));
      const odd = units.filter(({ partition }) => partition % 2 === 1);
      const held = await Promise.all(odd.map((unit) => first.tryAcquire(unit)));
      expect(held.every((lock) => lock !== null)).toBe(true);
      await held[0]?.release();
      const found = await Promise.all(units.map((unit) => second.tryAcquire(unit)));
      expect(found.map((lock) => lock !== null)).toEqual(
        units.map(({ partition }) => partition % 2 === 0 || partition === 1),
      );
    });

    test('is free at once after it is released or its process closes', async () => {
      const [first, second, third] = [openOne(), openOne(), openOne()];
      const lock = await acquired(first, 'passed-on');
      expect(await second.tryAcquire(unitOf('passed-on'))).toBeNull();
      await lock.release();
      const next = await acquired(second, 'passed-on');
      expect(() => next.verify()).not.toThrow();
      expect(await first.tryAcquire(unitOf('passed-on'))).toBeNull();
      await second.close();
      await acquired(third, 'passed-on');
    });

    // Memory ends with its process.
    if (kind !== 'memory') {
      test('is free again after its holder is killed', async () => {
        const program = join(import.meta.dirname, 'ownership-holder.ts');
        const holder = spawn(process.execPath, [program, kind, database.url, 'orphaned'], {
          stdio: ['ignore', 'pipe', 'inherit'],
        });
        const [answer] = await once(holder.stdout, 'data');
        expect(String(answer)).toBe('held\n');
        const survivor = openOne();
        expect(await survivor.tryAcquire(unitOf('orphaned'))).toBeNull();
        const exited = once(holder, 'exit');
        holder.kill('SIGKILL');
        await exited;
        await letEnd?.(db, 'orphaned');
        await until(() => survivor.tryAcquire(unitOf('orphaned')));
      });
    }

    test('signals its loss to its holder', async () => {
      const lock = await acquired(openOne(1), 'taken-away');
      expect(lock.lost.aborted).toBe(false);
      expect(() => lock.verify()).not.toThrow();
      const lost = new Promise((resolve) => lock.lost.addEventListener('abort', resolve));
      await takeAway(db, 'taken-away');
      await lost;
      expect(lock.lost.reason).toMatchObject({ code: 'PROCESSOR_FENCED' });
      expect(() => lock.verify()).toThrow(lock.lost.reason);
      await lock.release();
    });

    test('prevents a former holder from writing', async () => {
      await insertVersions(db, {
        name: 'fenced',
        version: 1,
        tableSchema: 'public',
        tableName: 'fenced_v1',
        partitions: 1,
        tableFingerprint: '',
        codeFingerprint: '',
        definition: {
          columns: [],
          keyColumns: [],
          filter: [],
          graphql: { type: 'A', single: 'a', list: 'as', globalId: true },
        },
      });
      await database.administer(
        'create table fenced_v1 (position bigint primary key); grant all on fenced_v1 to public',
      );
      const claim = async (owner: string) => {
        await acquired(openOne(), 'fenced');
        return claimProcessor(db, unitOf('fenced'), owner);
      };
      const batch = (by: Awaited<ReturnType<typeof claim>>, from: bigint, to: bigint) =>
        db.transaction(async (tx) => {
          await tx.query({ text: 'insert into fenced_v1 values ($1)', values: [to] });
          await advanceCheckpoint(tx, {
            claim: by,
            from: globalPosition(from),
            to: globalPosition(to),
            events: 1,
            rows: 1,
            busyMs: 1,
          });
        });
      const former = await claim('former');
      await batch(former, 0n, 1n);
      await takeAway(db, 'fenced');
      const latter = await until(() => claim('latter').catch(() => undefined));
      await expect(batch(former, 1n, 2n)).rejects.toMatchObject({ code: 'PROCESSOR_FENCED' });
      expect(await db.query({ text: 'select position from fenced_v1' })).toEqual([{ position: 1n }]);
      await batch(latter, 1n, 2n);
      const [registered] = await readRegistry(db);
      expect(registered).toMatchObject({ checkpoint: 2n, owner: 'latter' });
    });
  });
}
