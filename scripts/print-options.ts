/**
 * Writes docs/options.md from the rules of the options and the comments of their interfaces; with `--check`, fails if the file differs. Fails if an
 * option has no comment.
 */
import { readFile } from 'node:fs/promises';
import { allOptions } from '../src/config/all-options.ts';
import type { NamedOption, OptionRule } from '../src/config/option-rules.ts';
import { writeGenerated } from './generated-page.ts';

const file = 'docs/options.md';

/** The interface that documents each group of options. */
const interfaces: Readonly<Record<string, string>> = {
  '': 'ConfigOptions',
  database: 'DatabaseOptions',
  runtime: 'RuntimeOptions',
  'runtime.polling': 'PollingOptions',
  'runtime.audit': 'AuditOptions',
  gateway: 'GatewayOptions',
  'gateway.cors': 'CorsOptions',
  'gateway.rateLimit': 'RateLimitOptions',
  'gateway.persistedOperations': 'PersistedOperationsOptions',
  'gateway.fieldUsage': 'FieldUsageOptions',
  'gateway.admin': 'AdminOptions',
};
const extended: Readonly<Record<string, string>> = { GatewayOptions: 'GatewayPolicies' };
const sources = [
  'define-config',
  'database-options',
  'runtime-options',
  'gateway-options',
  'gateway-policies',
  'admin-options',
];

interface Comment {
  readonly meaning: string;
  readonly standard: string;
}

const comments = new Map<string, Comment>();
for (const source of sources) readComments(await readFile(`src/config/${source}.ts`, 'utf8'));

function readComments(code: string): void {
  for (const [, name, body = ''] of code.matchAll(/^export interface (\w+)[^{]*\{\n([\s\S]*?)^\}/gm)) {
    // A comment has no '*/' within, and only white space is between it and its property.
    for (const [, comment = '', property] of body.matchAll(/\/\*\*((?:(?!\*\/)[\s\S])*)\*\/\s*readonly (\w+)\??:/g)) {
      const words = comment
        .replace(/^\s*\* ?/gm, ' ')
        .replace(/\s+/g, ' ')
        .trim();
      const [meaning = '', standard = ''] = words.split(/@default /);
      comments.set(`${name}.${property}`, { meaning: plain(meaning), standard: plain(standard) });
    }
  }
}

function plain(text: string): string {
  return text
    .replace(/\{@link (\w+)\}/g, '`$1`')
    .replaceAll('|', '\\|')
    .trim();
}

function commentOf(path: readonly string[]): Comment {
  const name = path.at(-1);
  const holder = interfaces[path.slice(0, -1).join('.')] ?? '';
  const found = comments.get(`${holder}.${name}`) ?? comments.get(`${extended[holder]}.${name}`);
  if (!found) throw new Error(`The option ${path.join('.')} has no comment in the interface ${holder}.`);
  return found;
}

function takes(rule: OptionRule): string {
  if (!('kind' in rule))
    return rule.max === Number.MAX_SAFE_INTEGER ? `${rule.min} or more` : `${rule.min} to ${rule.max}`;
  switch (rule.kind) {
    case 'share':
      return `${rule.min} to ${rule.max}`;
    case 'boolean':
    case 'group':
      return '`true`, `false`';
    case 'choice':
      return rule.of.map((one) => `\`${one}\``).join(', ');
    case 'list':
      return 'list, with commas';
    case 'json':
      return 'JSON';
    case 'text':
      return 'text';
    case 'url':
      return 'URL';
  }
}

function row({ path, rule, variable }: NamedOption): string {
  const { meaning, standard } = commentOf(path);
  const also = 'also' in rule && rule.also !== undefined ? `, \`${rule.also}\`` : '';
  const shown = standard === '' ? '' : /^[\w.'-]+$/.test(standard) ? `\`${standard}\`` : standard;
  return `| \`${path.join('.')}\`<br>\`${variable}\`${also} | ${takes(rule)} | ${shown} | ${meaning} |`;
}

const head = '| option and variable | takes | default | meaning |\n| --- | --- | --- | --- |';

function section(name: string): string {
  const options = allOptions.filter(({ path }) => path[0] === name);
  return `## ${name}\n\n${[head, ...options.map(row)].join('\n')}`;
}

const text = `<!-- Generated from src/config/ by \`npm run codegen\`. -->

# Options

For operators: every option of an application that is no declaration. \`defineConfig\` takes them by name, the environment by
variable. The environment wins:

\`\`\`sh
REFOLD_RUNTIME_OWNERSHIP=lease DATABASE_URL_FILE=/run/secrets/database-url refold start
\`\`\`

- Each variable may name a file instead: \`DATABASE_URL_FILE\` holds the path of a file that holds the URL. Use it for
  secrets. A line break at the end of the file is ignored.
- An empty variable sets nothing. A wrong value, an unknown variable and two variables for one option are refused.
- The commands of \`refold\` read the environment. \`createRefold\` does not: what a program passes is what counts.
- \`refold doctor\` shows which variables are in effect.

Other variables: \`LOG_LEVEL\` is the lowest level that \`refold start\` and \`refold dev\` log (\`info\`), and \`LOG_FORMAT\` is \`json\` or
\`text\` (text in a terminal, else JSON; see [operating](operating.md#logs)). \`NODE_ENV=production\`
switches off what \`development\` switches on.

${[...new Set(allOptions.map(({ path }) => path[0] ?? ''))].map(section).join('\n\n')}
`;

await writeGenerated(file, text, 'the options and their comments');
