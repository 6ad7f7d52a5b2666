import { glob, readFile } from 'node:fs/promises';
import { expect, test } from 'vitest';
import { refoldCodes } from '../../src/error-codes.ts';
import { gatewayCodes } from '../../src/gateway/requests/gateway-codes.ts';

test('every error code that a response can have is described in docs/errors.md', async () => {
  const used: string[] = [];
  for await (const file of glob('src/{gateway,schema}/**/*.ts')) {
    // As `code: 'X'`, or as an argument of a function that creates an error.
    const named = (await readFile(file, 'utf8')).matchAll(/(?:\bcode: |\b(?:refuse|refusal)\([^;]*?)'([A-Z_]{8,})'/g);
    used.push(...[...named].map(([, code = '']) => code));
  }
  expect(new Set(used).size).toBeGreaterThan(10);
  expect([...new Set(used)].filter((code) => !(code in refoldCodes) && !(code in gatewayCodes))).toEqual([]);
  const page = await readFile('docs/errors.md', 'utf8');
  const described = [...Object.keys(refoldCodes), ...Object.keys(gatewayCodes)];
  expect(described.filter((code) => !page.includes(`| \`${code}\` |`))).toEqual([]);
});
