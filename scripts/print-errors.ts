/** Writes docs/errors.md from the tables of error codes; with `--check`, fails if the file differs. */

import { type ErrorCode, refoldCodes } from '../src/error-codes.ts';
import { gatewayCodes } from '../src/gateway/requests/gateway-codes.ts';
import { writeGenerated } from './generated-page.ts';

const file = 'docs/errors.md';
const codes: readonly (readonly [string, ErrorCode])[] = Object.entries({ ...refoldCodes, ...gatewayCodes });
const seen = codes.filter(([, { status }]) => status !== null);
const unseen = codes.filter(([, { status }]) => status === null);

const text = `<!-- Generated from src/error-codes.ts and src/gateway/requests/gateway-codes.ts by \`npm run codegen\`. -->

# Error codes

For everybody who handles an error of Refold: what each code means, and what to do. Decide by the code, never by the
message, which may change. A client reads \`extensions.code\`:

\`\`\`json
{ "errors": [{ "message": "This cart is confirmed.", "extensions": { "code": "COMMAND_REJECTED" } }] }
\`\`\`

A program that calls Refold reads \`error.code\`. Every error is a \`RefoldError\`; its \`fields\` have the details.

## Codes that clients see

The status is that of the HTTP response. An error of a field, beside data of other fields, has the status 200.

${table(['code', 'HTTP status', 'what happened', 'why', 'what to do'], seen, ({ status }) => [String(status)])}

## Codes that programs and operators see

These are thrown by the API of \`refold\`, printed by the command line, or kept in \`refold status\` and the log. Clients
get \`INTERNAL_SERVER_ERROR\` instead.

${table(['code', 'what happened', 'why', 'what to do'], unseen, () => [])}
`;

function table(
  head: readonly string[],
  rows: readonly (readonly [string, ErrorCode])[],
  extra: (code: ErrorCode) => readonly string[],
): string {
  const lines = rows
    .toSorted(([a], [b]) => (a < b ? -1 : 1))
    .map(([name, code]) => [`\`${name}\``, ...extra(code), code.what, code.why, code.do]);
  return [head, head.map(() => '---'), ...lines].map((cells) => `| ${cells.join(' | ')} |`).join('\n');
}

await writeGenerated(file, text, 'the tables of error codes');
