/** Writes the GraphQL schemas of the samples beside them; with `--check`, only says whether they are as they should be. */
import { spawnSync } from 'node:child_process';

const samples = ['shopping-cart', 'online-retail'];
const check = process.argv.includes('--check') ? ['--check'] : [];
for (const sample of samples) {
  const folder = `examples/${sample}`;
  const command = [
    'src/cli/main.ts',
    'schema',
    '--config',
    `${folder}/app.ts`,
    '--out',
    `${folder}/schema.generated.graphql`,
    ...check,
  ];
  const { status } = spawnSync(process.execPath, command, { stdio: 'inherit' });
  if (status !== 0) process.exitCode = 1;
}
