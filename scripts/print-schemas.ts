/** Writes the GraphQL schemas of the samples next to them, and the types of the shop's scalars; with `--check`, fails if they differ. */
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
// What codegen.ts passes to graphql-codegen, as a user's configuration would.
print('shopping-cart', 'scalars.generated.json', '--scalars');
