import { expect, test } from 'vitest';
import { z } from 'zod';
import { createLogger, defineEvents, defineProjection, RefoldError, t } from '../../src/index.ts';

const customer = defineEvents('customer', { Registered: z.object({}) });

const customers = defineProjection({
  name: 'customers',
  version: 1,
  events: customer,
  table: {
    customerId: t.text().primaryKey(),
    emailAddress: t.text().personal(),
    name: t.text().personal(),
    city: t.text(),
  },
  key: (event) => event.streamId,
  evolve: { Registered: (row) => row },
});

function lines(options: Parameters<typeof createLogger>[0] = {}) {
  const written: string[] = [];
  const logger = createLogger({ ...options, destination: { write: (line) => void written.push(line) } });
  return { logger, written, last: () => JSON.parse(written.at(-1) ?? '') };
}

test('lines are JSON with the names of levels', () => {
  const { logger, written, last } = lines({ name: 'refold', level: 'debug' });
  logger.debug('first');
  logger.warn({ projection: 'balance@1' }, 'second');
  expect(written.every((line) => line.endsWith('}\n'))).toBe(true);
  expect(JSON.parse(written[0] ?? '')).toMatchObject({ level: 'debug', msg: 'first', name: 'refold' });
  expect(last()).toMatchObject({ level: 'warn', projection: 'balance@1', msg: 'second' });
});

test.each([
  [
    'the password of a URL',
    'postgres://shop:s3cr3t!@db:5432/shop is down',
    'postgres://shop:[redacted]@db:5432/shop is down',
  ],
  ['a password of connection settings', 'host=db password=s3cr3t user=shop', 'host=db password=[redacted] user=shop'],
  ['a bearer token', 'refused: Bearer abc.DEF_123-456', 'refused: Bearer [redacted]'],
  ['a JWT', 'got eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.c2lnbmF0dXJl there', 'got [redacted] there'],
  [
    'the values of a unique violation',
    'Key (tenant, lower(email))=(t1, ada@example.test) already exists.',
    'Key (tenant, lower(email))=(hidden) already exists.',
  ],
  ['the values of a row', 'Failing row contains (1, ada@example.test, null).', 'Failing row contains (hidden).'],
  ['nothing of other text', 'bearer authentication of http://127.0.0.1:4000/graphql', undefined],
])('a line has not %s', (_, given, written = given) => {
  const { logger, last } = lines();
  logger.info(given);
  expect(last().msg).toBe(written);
  logger.error({ err: new Error(given, { cause: new Error(given) }) }, 'failed');
  const { err } = last();
  expect(err.message).toBe(`${written}: ${written}`);
  if (written !== given) expect(err.stack).not.toContain(given);
});

test('a line has no credentials of a request', () => {
  const { logger, written } = lines();
  const headers = { authorization: 'Basic dTpzM2NyM3Q=', cookie: 'sid=s3cr3t', 'x-api-key': 's3cr3t', accept: '*/*' };
  logger.info({
    req: { headers, list: { 'set-cookie': ['a=s3cr3t', 'b=s3cr3t'] } },
    admin: [{ adminToken: 's3c\\"r3t' }],
  });
  expect(written.join()).not.toMatch(/s3c|dTpz/);
  expect(JSON.parse(written[0] ?? '').req.headers.accept).toBe('*/*');
});

test('a line has no value of a personal column, wherever it is, by the name of the column or of SQL', () => {
  const { logger, written, last } = lines({ projections: [customers] });
  const row = { customerId: '1', emailAddress: 'ada@example.test', name: 'Ada', city: 'London' };
  logger.info(
    { row, rows: [row], event: { payload: { email_address: 'ada@example.test' } }, emailAddress: 'ada@example.test' },
    'seen',
  );
  expect(written.join()).not.toMatch(/ada/i);
  expect(last()).toMatchObject({
    msg: 'seen',
    level: 'info',
    row: { customerId: '1', emailAddress: '(hidden)', name: '(hidden)', city: 'London' },
    emailAddress: '(hidden)',
  });
});

test('an error keeps its name and code where a column has these names', () => {
  const named = { hidden: new Set(['name', 'code']), sqlNames: { name: 'name', code: 'code' } };
  const { logger, last } = lines({ projections: [named] });
  const details = { code: '0815', name: 'Ada' };
  logger.error({ err: new RefoldError('STREAM_LOCKED', 'somebody waits', { details }), code: '4711' }, 'failed');
  expect(last()).toMatchObject({
    err: {
      type: 'RefoldError',
      name: 'RefoldError',
      code: 'STREAM_LOCKED',
      fields: { details: { code: '(hidden)', name: '(hidden)' } },
    },
    code: '(hidden)',
  });
});

test('a column may have the name of a part of each line', () => {
  const { logger, last } = lines({ name: 'shop', projections: [customers] });
  logger.info({ row: { name: 'Ada', emailAddress: null } }, 'seen');
  expect(last()).toMatchObject({ name: 'shop', row: { name: '(hidden)', emailAddress: null } });
});
