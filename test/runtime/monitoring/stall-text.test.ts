import { expect, test } from 'vitest';
import { globalPosition } from '../../../src/index.ts';
import { stallText } from '../../../src/runtime/monitoring/stall-text.ts';

test('who holds the log back is described with the way to end it', () => {
  const stall = {
    tag: globalPosition(1042n),
    pid: 4711,
    applicationName: 'nightly import',
    role: 'etl',
    clientAddress: '10.0.0.7',
    state: 'idle in transaction',
    seconds: 61.2,
    query: 'insert into refold.events …',
  };
  expect(stallText(stall)).toBe(
    "The log can't be read past position 1042: session 4711 of 'nightly import' (etl from 10.0.0.7) has been appending for 62 s, idle in transaction: insert into refold.events …. If it does not end, `select pg_terminate_backend(4711)` ends it: its append is rolled back.",
  );
  expect(
    stallText({ ...stall, pid: null, applicationName: 'prepared transaction x', state: 'prepared', query: null }),
  ).toMatch(
    /prepared transaction x has been appending for 62 s, prepared\. Finish it with `commit prepared` or `rollback prepared`\.$/,
  );
});
