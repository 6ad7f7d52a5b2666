/** Writes the GraphQL schemas of the samples beside them, and the types of the shop's scalars; with `--check`, only says whether they are as they should be. */
import { spawnSync } from 'node:child_process';

const samples = ['shopping-cart', 'online-retail'];
const check = process.argv.includes('--check') ? ['--check'] : [];

function print(sample: string, file: string, ...options: string[]): void {
  const folder = `examples/${sample}`;
  const command = ['src/cli/main.ts', 'schema', ...options, '--config', `${folder}/app.ts`];
  const { status } = spawnSync(process.execPath, [...command, '--out', `${folder}/${file}`, ...check], {
    stdio: 'inherit',
  });
  if (status !== 0) process.exitCode = 1;
}

for (const sample of samples) print(sample, 'schema.generated.graphql');
// What codegen.ts gives to graphql-codegen, as any user's would.
print('shopping-cart', 'scalars.generated.json', '--scalars');
