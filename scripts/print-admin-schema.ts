/** Writes docs/admin-schema.graphql from the code; with `--check`, fails if it differs. */
import { readFileSync, writeFileSync } from 'node:fs';
import { adminSchemaText } from '../src/admin/create-admin-schema.ts';

const file = 'docs/admin-schema.graphql';
const text = `# The admin API: docs/admin.md says how to use it. Written by scripts/print-admin-schema.ts.\n\n${adminSchemaText()}`;
if (!process.argv.includes('--check')) writeFileSync(file, text);
else if (readFileSync(file, 'utf8') !== text) {
  console.error(`${file} differs from the code. Run \`npm run codegen\`.`);
  process.exitCode = 1;
}
