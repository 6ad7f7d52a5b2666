import { pino } from 'pino';
import { expect, test } from 'vitest';
import { createAdminErrorMask } from '../../src/admin/serving/mask-errors.ts';
import { RefoldError } from '../../src/errors.ts';
import { unknownOutcome } from '../../src/store/postgres/database-errors.ts';

const mask = createAdminErrorMask(pino({ level: 'silent' }), []);

test('an action whose commit was not answered is told as one that may be done', () => {
  const lost = unknownOutcome(new RefoldError('DATABASE_UNAVAILABLE', 'PostgreSQL at db:5432: the connection ended.'));
  expect(mask(lost)).toMatchObject({
    message: expect.stringMatching(/may be done\. Look into the audit log/),
    extensions: { code: 'OUTCOME_UNKNOWN' },
  });
});

test('an error that nobody expected is logged under the id that the caller gets', () => {
  const masked = mask(new TypeError('secret'));
  expect(masked.extensions).toEqual({ code: 'INTERNAL_SERVER_ERROR', errorId: expect.any(String) });
  expect(masked.message).toContain(String(masked.extensions.errorId));
  expect(masked.message).not.toContain('secret');
});
