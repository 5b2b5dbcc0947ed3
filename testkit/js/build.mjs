// Builds the packages for npm: the library, and one per platform with the program.
//
//   node build.mjs VERSION OUT PROGRAMS
//
// PROGRAMS has files gozkd-testkit-OS-ARCH, as Go names them, and licences. The library asks for the
// packages of all platforms; npm installs the one that fits.
import { execFileSync } from 'node:child_process';
import { chmodSync, copyFileSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';

const OS = { linux: 'linux', darwin: 'darwin', windows: 'win32' };
const CPU = { amd64: 'x64', arm64: 'arm64' };

const [version, out, programs] = process.argv.slice(2);
const here = fileURLToPath(new URL('.', import.meta.url));
const library = JSON.parse(readFileSync(join(here, 'package.json'), 'utf8'));
const tmp = mkdtempSync(join(tmpdir(), 'gozkd-npm-'));

function pack(name, manifest, files) {
  const dir = join(tmp, name);
  mkdirSync(dir);
  for (const [to, from] of Object.entries(files)) {
    copyFileSync(from, join(dir, to));
    chmodSync(join(dir, to), to.startsWith('gozkd-testkit') ? 0o755 : 0o644);
  }
  writeFileSync(join(dir, 'package.json'), JSON.stringify({ ...manifest, version }, null, 2) + '\n');
  const file = execFileSync('npm', ['pack', '--silent', '--pack-destination', resolve(out)], { cwd: dir, encoding: 'utf8' });
  console.log(join(out, file.trim()));
}

mkdirSync(out, { recursive: true });
const { description, license, repository } = library;
const licences = Object.fromEntries(readdirSync(programs).filter((name) => name.startsWith('LICENSE')).map((name) => [name, join(programs, name)]));
for (const program of readdirSync(programs)) {
  const [, os, arch] = /^gozkd-testkit-([a-z]+)-([a-z0-9]+?)(\.exe)?$/.exec(program) ?? [];
  if (!os) continue;
  const name = `@gozkd/testkit-${OS[os]}-${CPU[arch]}`;
  const binary = os === 'windows' ? 'gozkd-testkit.exe' : 'gozkd-testkit';
  const manifest = { name, description: `The program of @gozkd/testkit for ${OS[os]} ${CPU[arch]}`, license, repository, os: [OS[os]], cpu: [CPU[arch]], files: [binary, ...Object.keys(licences)] };
  pack(`${os}-${arch}`, manifest, { [binary]: join(programs, program), ...licences });
}
const optionalDependencies = Object.fromEntries(
  Object.values(OS).flatMap((os) => Object.values(CPU).map((cpu) => [`@gozkd/testkit-${os}-${cpu}`, version])),
);
pack('library', { ...library, optionalDependencies }, { 'index.js': join(here, 'index.js'), 'index.d.ts': join(here, 'index.d.ts'), 'README.md': join(here, 'README.md'), LICENSE: licences.LICENSE });
rmSync(tmp, { recursive: true });
