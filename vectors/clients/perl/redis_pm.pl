# Plays the vectors on the server at REDIS_URL: perl redis_pm.pl [file ...]; needs Redis.pm.
use FindBin qw($Bin); use IO::File; use JSON::PP; use Redis;
# sample
use v5.36; use Digest::SHA qw(sha1_hex);

sub limiter ($client, $path) {
    open my $file, '<:raw', $path or die "$path: $!";
    my $text = join '', <$file>;
    my $sha = sha1_hex($text);
    # args: amount, period_ns, burst or mode, cost[, now_ns].
    # Returns (status, remaining, retry_after_ns, reset_after_ns).
    return sub ($key, @args) {
        my @reply = eval { $client->evalsha($sha, 1, $key, @args) };
        die $@ if $@ && $@ !~ /^\[evalsha\] NOSCRIPT/;
        return $@ ? $client->eval($text, 1, $key, @args) : @reply;
    };
}
# end
my ($password, $server) = $ENV{REDIS_URL} =~ m{^redis://(?:[^/@]*:([^/@]*)@)?([^/]+)} or die 'no REDIS_URL';
my $client = Redis->new(server => $server, $password ? (password => $password) : ());
my ($key, %counts) = (sprintf('tatami:%08x%08x', rand 2**32, rand 2**32), passed => 0, failed => 0);
sub check ($name, $got, $want) {
    $counts{$got eq $want ? 'passed' : 'failed'}++;
    say "$name: got $got, want $want" if $got ne $want;
    $client->del($key);
}
sub fit ($got, $want) { # each of want, where the number lies in it: 7, or 0..7
    join ' ', map {
        my ($least, $most) = split /\.\./, $want->[$_] // '0';
        $least <= $got->[$_] && $got->[$_] <= ($most // $least) ? $want->[$_] // '' : $got->[$_];
    } 0 .. $#$got;
}
check('64 bits', $client->incrby($key, '9223372036854775807'), '9223372036854775807');
for my $path (@ARGV ? @ARGV : glob "$Bin/../../*_v*.json") {
    my ($script, $groups) = decode_json(join '', IO::File->new($path)->getlines)->@{qw(script groups)};
    my $file = "$Bin/../../../lua/$script.lua";
    for my $group (@$groups) {
        my ($lead, $setting, $tests, $streams) = $group->@{qw(argv setting tests streams)};
        my ($keys, $prelude) = $setting->@{qw(keys prelude)};
        my $text = join '', $prelude, IO::File->new($file)->getlines;
        my $allow = $keys == 1 && $prelude eq '' ? limiter($client, $file)
            : sub ($key, @args) { $client->eval($text, $keys, ($key) x $keys, @args) };
        for my $test (@$tests) {
            my ($before, $got, $want) = $test->{key};
            $client->set($key, pack 'H*', $before->{hex}) if $before->{kind} eq 'string';
            $client->rpush($key, 'a') if $before->{kind} eq 'list';
            for my $step ($test->{steps}->@*) {
                my ($expire, $reply) = $step->@{qw(expire reply)};
                $expire eq 'none' ? $client->persist($key) : $client->pexpire($key, $expire) if $expire ne '';
                my $answer = eval { fit([$allow->($key, @$lead, $step->{argv}->@*)], $reply) } // $@ =~ s/^\[\w+\] |\n//gr;
                $answer = $step->{error} if $step->{error} && $answer =~ /^\Q$step->{error}/;
                my $state = $client->type($key) eq 'string' ? unpack 'H*', $client->get($key) : '';
                $state = $step->{state} if $state =~ /^$step->{state}\z/;
                $got = "$answer|$state|" . fit([$client->pttl($key)], [$step->{ttl_ms}]);
                $want = ($step->{error} || "@$reply") . "|$step->{state}|$step->{ttl_ms}";
                last if $got ne $want;
            }
            check("$script $test->{id}", $got, $want);
        }
        for my $stream (@$streams) {
            my ($now_ns, $replies) = ($stream->{now_ns}, '');
            for (1 .. $stream->{calls}) {
                my @reply = $allow->($key, @$lead, $stream->{cost}, $now_ns);
                $replies .= "@reply\n"; $now_ns += $reply[2];
            }
            check("$script $stream->{id}", Digest::SHA::sha256_hex($replies), $stream->{sha256});
        }
    }
}
say "$counts{passed} passed, $counts{failed} failed";
exit($counts{failed} > 0);
