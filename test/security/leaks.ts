import { expect } from 'vitest';
import { foreignMark } from './target.ts';

/** Texts that no response may contain: internals, and the other tenant's data. */
const leaks: Readonly<Record<string, RegExp>> = {
  SQL: /\b(?:select|insert into|update|delete from)\s+["\w.*]+\s*(?:,|from|set|where|values|\()/i,
  "the database's words":
    /syntax error at|invalid input syntax|violates|out of range for type|does not exist at character|SQLSTATE|\bpg_|prepared statement/i,
  'tables and schemas': /\brefold\.\w|read_models|letter_v1|sender_v1|append_keys|\bevents_pkey/,
  'drivers and libraries': /postgres|kysely|node_modules|pothos|dataloader|zod/i,
  'stack frames': /\bat (?:async )?[\w.<>]+ \(|\bat file:|node:internal|RangeError|TypeError|ReferenceError/,
  paths: /\/(?:work|home|tmp|usr|src|test)\/|\.ts\b|file:\/\//,
  secrets: /shared secret|eyJ[\w-]{10,}\./,
  'rows of another tenant': new RegExp(foreignMark),
};

/** Checks a whole response, headers and body. */
export function expectNoLeak(answer: string): void {
  for (const [what, pattern] of Object.entries(leaks)) {
    expect(pattern.exec(answer)?.[0] ?? null, `${what} in ${answer.slice(0, 2000)}`).toBeNull();
  }
}
