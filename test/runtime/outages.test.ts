import { pino } from 'pino';
import { expect, test } from 'vitest';
import { RefoldError } from '../../src/errors.ts';
import { createOutages } from '../../src/runtime/ownership/outages.ts';

test('an outage is one line when it begins, one a minute with a count, and one when it is over', () => {
  const lines: { msg: string; failures?: number }[] = [];
  let seconds = 0;
  const { logger, answered } = createOutages(
    pino({ level: 'warn' }, { write: (line: string) => void lines.push(JSON.parse(line)) }),
    { now: () => seconds * 1000 },
  );
  const said = () => lines.splice(0).map(({ msg }) => msg);
  const err = new RefoldError('DATABASE_UNAVAILABLE', 'nothing listens there');

  logger.warn({ err: new Error('of another kind') }, 'as it is');
  logger.error('a text');
  answered();
  expect(said()).toEqual(['as it is', 'a text']);

  for (; seconds < 150; seconds += 0.5) {
    logger.warn({ err, projection: 'cart@1' }, 'trying again');
    logger.error({ err: new RefoldError('OUTCOME_UNKNOWN', 'lost') }, 'not written');
  }
  expect(said()).toEqual([
    'the database is not available: operations that need it are retried. RefoldError: nothing listens there',
    'the database is still not available: 240 attempts failed since the last line',
    'the database is still not available: 240 attempts failed since the last line',
  ]);

  answered();
  expect(said()).toEqual([]);
  seconds += 5;
  answered();
  answered();
  expect(said()).toEqual(['the database is available again after 155 s; 600 attempts failed']);

  const fenced = (cause?: Error) => new RefoldError('PROCESSOR_FENCED', 'another owner', {}, { cause });
  logger.warn({ err: fenced() }, 'another process owns it');
  logger.warn({ err: fenced(err) }, 'the session of the owner has ended');
  logger.warn({ err: fenced(err) }, 'the session of the owner has ended');
  expect(said()).toEqual([
    'another process owns it',
    'the database is not available: operations that need it are retried. RefoldError: another owner',
  ]);

  logger.child({ reactor: 'mail' }).warn({ err }, 'a line of the application');
  expect(said()).toEqual(['a line of the application']);
});
