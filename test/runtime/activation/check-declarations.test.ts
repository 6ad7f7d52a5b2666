import { pino } from 'pino';
import { beforeAll, expect, test } from 'vitest';
import { defineConfig, defineProjection, type Projection, t } from '../../../src/index.ts';
import { checkStoredDeclarations } from '../../../src/runtime/activation/check-declarations.ts';
import { startRuntime } from '../../../src/runtime/runtime.ts';
import { databaseOfFile } from '../../support/database-of-file.ts';
import { account, openingsV1 } from '../../support/sample-domain.ts';

const { database, db } = await databaseOfFile();

const owners = (version: number, owner: ReturnType<typeof t.text>, codeVersion?: string): Projection =>
  defineProjection({
    name: 'balance',
    version,
    events: account,
    table: { accountId: t.text().primaryKey(), owner },
    key: (event) => event.streamId,
    evolve: { Opened: (_, event) => ({ owner: event.payload.owner }) },
    ...(codeVersion === undefined ? {} : { codeVersion }),
  });
const deployed = owners(1, t.text());

beforeAll(async () => {
  const runtime = await startRuntime({
    config: defineConfig({ projections: [deployed] }),
    url: database.url,
    owner: 'test',
    development: false,
    maintain: false,
    logger: pino({ level: 'silent' }),
  });
  await runtime.stop();
});

const check = (...projections: Projection[]) => checkStoredDeclarations(db, defineConfig({ projections }));

test('declarations that match the database produce no messages', async () => {
  expect(await check(deployed)).toEqual([]);
});

test('a new version is reported, with what its clients would lose', async () => {
  const renamed = defineProjection({
    name: 'balance',
    version: 2,
    events: account,
    table: { accountId: t.text().primaryKey(), holder: t.text() },
    key: (event) => event.streamId,
    evolve: { Opened: (_, event) => ({ holder: event.payload.owner }) },
  });
  const [added, breaking] = await check(deployed, renamed);
  expect(added).toEqual({ kind: 'note', message: 'balance@2 is new: it will be built when it is deployed.' });
  expect(breaking?.kind).toBe('note');
  expect(breaking?.message).toBe(
    "balance@2 would break clients of balance@1, so it will be held at ready: 1 breaking change, see 'refold changes balance@2'.",
  );
});

test('a changed table, changed code and a missing active version are problems, each with the way out', async () => {
  expect(await check(owners(1, t.text().index()))).toEqual([
    {
      kind: 'problem',
      message:
        'balance@1: its table is declared differently from the one in the database. Undo the change and declare it as balance@2 beside this version.',
    },
  ]);
  expect(await check(owners(1, t.text(), 'of another file'))).toMatchObject([
    { kind: 'problem', message: expect.stringMatching(/^balance@1: the code of its key or evolve is not the code/) },
  ]);
  expect(await check(openingsV1)).toMatchObject([
    { kind: 'problem', message: expect.stringMatching(/^balance@1 is active, but this program declares no active/) },
    { kind: 'note', message: expect.stringMatching(/^openings@1 is new/) },
  ]);
});
