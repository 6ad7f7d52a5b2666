/**
 * `npm run price`: what this branch adds to `src/`, and the rooms that it touches. The sentence in a change's description: how many lines a feature
 * adds, and which other features' files it had to change.
 */
import { execFileSync } from 'node:child_process';
import { parseArgs } from 'node:util';
import { roomOf } from '../test/house/floors.ts';
import { rooms } from '../test/house/rooms.ts';

const { positionals } = parseArgs({ allowPositionals: true });
const [base = 'main'] = positionals;
const git = (...given: readonly string[]) => execFileSync('git', given, { encoding: 'utf8' });
// Also what is not committed yet.
const changed = git('diff', '--numstat', '--no-renames', git('merge-base', base, 'HEAD').trim(), '--', 'src')
  .split('\n')
  .filter(Boolean)
  .map((line) => {
    const [added, removed, file = ''] = line.split('\t');
    return { added: Number(added), removed: Number(removed), file: file.replace(/^src\//, '') };
  });
const byRoom = Map.groupBy(changed, ({ file }) => roomOf(file) ?? file.split('/').slice(0, -1).join('/'));
const sum = (files: typeof changed) => {
  const added = files.reduce((total, one) => total + one.added, 0);
  const removed = files.reduce((total, one) => total + one.removed, 0);
  return `+${added} −${removed}, ${added - removed >= 0 ? '+' : '−'}${Math.abs(added - removed)} lines`;
};
for (const [room, files] of [...byRoom].sort(([a], [b]) => a.localeCompare(b))) {
  console.log(`${room === '' ? 'src' : room}: ${sum(files)}${room in rooms ? ` (${rooms[room]?.purpose})` : ''}`);
  for (const { file, added, removed } of files) console.log(`  ${file} +${added} −${removed}`);
}
console.log(`\nsrc: ${sum(changed)}, ${changed.length} files of ${byRoom.size} rooms`);
